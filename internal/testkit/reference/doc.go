// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package reference says, slowly and obviously, which spans a run of a Bytefrog
// agent has to become. It is what the distribution is measured against, so it
// shares no code with it: the bytes are read here with encoding/binary, as the
// protocol's document says, all events are sorted by their sequence number, and
// every thread has one stack.
//
// It knows runs whose sequence numbers and times don't wrap, which is all that
// the captures hold.
package reference
