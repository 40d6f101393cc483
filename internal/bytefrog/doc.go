// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package bytefrog decodes and encodes the messages of the Bytefrog tracer.
//
// It knows the layout of every message of protocol versions 1 and 2, which side
// sends which message on which connection, the two ways a configuration is
// written (an object of Java's serialisation for version 1, JSON for version 2),
// and the parts of a method signature's text. Integers are big endian; strings are
// Java modified UTF-8 behind a 16-bit length in bytes.
//
// Each message is decoded alone: the package holds no connection, no run, no clock
// and no table of names, sorts nothing, and pairs no calls. Of versions 3 and 4,
// whose agents report visits instead of calls, it knows only the names of the
// messages, so that a receiver can refuse them with a clear text.
//
// # Events and messages
//
// Almost all messages of an agent are call events, so these have their own function:
// DecodeEvents fills a slice of Event and stops at the first byte that is not a
// complete call event. DecodeData then reads the one message at that place, and
// returns its length:
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
//			break // a protocol error, or the rest of the message has not arrived
//		}
//		b = b[n:]
//		// use m
//	}
//
// A fresh connection begins with DecodeFirst; after that a control connection is
// read with DecodeControl and a data connection with DecodeEvents and DecodeData.
// DecodeCommand reads the messages to an agent, for programs that simulate one.
//
// # Errors of the document
//
// For an exception bubble, the protocol's document has 19 bytes in its table and 15 in its text: 19 is right. In the
// document the hello carries a base time. In reality it does not: times count from the arrival of start at the agent.
// The document calls the strings of a marker UTF-8: they are modified UTF-8 like all others.
package bytefrog
