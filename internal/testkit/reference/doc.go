// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package reference computes the expected spans of a Bytefrog agent's run with slow and simple code. Tests compare the
// distribution with it, so it shares no code with the distribution. It reads the bytes with encoding/binary, by the
// protocol's document, sorts all events by their sequence number, and has one stack for each thread.
//
// It does not support sequence numbers and times that wrap; no capture has them.
package reference
