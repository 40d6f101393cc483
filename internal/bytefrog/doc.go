// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package bytefrog is the message protocol of the Bytefrog tracer: bytes in,
// values out, and back.
//
// It knows the layout of every message of protocol versions 1 and 2, which side
// sends which message on which connection, the two ways a configuration is
// written (an object of Java's serialisation for version 1, JSON for version 2),
// and what a method signature's text says. Integers are big endian; strings are
// Java modified UTF-8 behind a 16-bit length in bytes.
//
// It does not know what messages mean to each other: it holds no connection, no
// run, no clock and no table of names, puts nothing in order, and pairs no calls.
// Versions 3 and 4, whose agents report visits instead of calls, are known by the
// names of their messages only, so that they can be refused with a clear text.
//
// # Two ways in
//
// Almost everything an agent sends is call events, so these have a way of their
// own: DecodeEvents fills a slice of Event and stops at the first byte that is
// not a complete call event. What stands there is then given to DecodeData, which
// reads the one message in front and says how long it is:
//
//	for len(b) > 0 {
//		events, n := bytefrog.DecodeEvents(buf, b)
//		b = b[n:]
//		// use buf[:events]
//		if events == len(buf) {
//			continue
//		}
//		m, n, err := bytefrog.DecodeData(b, maxString)
//		if err != nil || n == 0 {
//			break // a protocol error, or the rest of the message is still to come
//		}
//		b = b[n:]
//		// use m
//	}
//
// A fresh connection begins with DecodeFirst; after that a control connection is
// read with DecodeControl and a data connection with DecodeEvents and DecodeData.
// DecodeCommand reads what is sent to the agent, for programs that play one.
//
// # Where the document errs
//
// The document of the protocol gives an exception bubble 19 bytes in its table
// and 15 in its text: 19 is right. It says that hello carries a base time: it
// does not; times count from the moment the agent is told to start. It calls the
// strings of a marker UTF-8: they are modified UTF-8 like all others.
package bytefrog
