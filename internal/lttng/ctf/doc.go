// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package ctf reads the Common Trace Format, versions 1.8 and 2: metadata and
// packets in, events out.
//
// It knows no files and no connections: whoever has the bytes gives them. The way of
// the data:
//
//	metadata ──► unwrapped ──► tsdl or ctf2 ──► metadata.Trace ──► compiled ──► StreamClass, EventClass
//	packet ──► Reader.Begin: header and context ──► Reader.Next: event after event
//
// Metadata may come in pieces, in packets or plain, at any time while packets are
// read: Trace.Append adds stream and event classes and never changes those that
// exist. When a class becomes known, its fields are laid out and compiled into a
// program: a list of simple operations in which names, types, alignments and byte
// orders have become offsets and sizes. Fields whose sizes are known are read in
// runs whose bounds are checked once. Reading an event executes the program of its
// class, which puts one 64-bit word for each field into a slice that is used again
// for the next event; text and blobs are places in the packet. Nothing is
// allocated for an event, and nothing is looked up by name.
//
// A consumer asks a class for its fields when it meets it first, and an event for
// their values:
//
//	t := ctf.NewTrace()
//	err := t.Append(metadata)
//	r := ctf.NewReader(t)
//	if err := r.Begin(packet); err != nil { … }
//	for r.Next() {
//		e := &r.Event
//		message := e.Text(fields[e.Class].message)
//	}
//	if err := r.Err(); err != nil { … }
//
// What is inside of arrays is reached by Element, what is inside of variants and
// optional fields has a value only where Present says so.
//
// What the formats have and this package refuses, where it is declared: integers of
// more than 64 bits, floating point numbers of other sizes than 32 and 64 bits, lengths
// and selectors inside of arrays, variants or optional fields that aren't around the
// field that needs them, headers and contexts of packets of more than 512 values, metadata
// packets that are compressed, encrypted or have a
// checksum, and byte orders that change in the middle of a byte. The last is not seen
// where only the packet says whether a field ends in the middle of a byte.
//
// Packets and metadata come from the network. Whatever they say, no function here
// panics, and none allocates or loops by a number that it hasn't compared with the
// bytes there are and with the bounds in limits.go.
package ctf
