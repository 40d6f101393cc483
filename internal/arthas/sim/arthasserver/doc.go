// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package arthasserver is a simulated Arthas server with its HTTP API, attached to a simulated program. It has the traps
// of the real one: queues that drop results without a word, one job a session, polls that block event loops, resets that
// leave classes instrumented. It shares no code with the client.
package arthasserver
