// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package ctf reads the Common Trace Format, versions 1.8 and 2. Its input is metadata and packets, its output is
// events.
//
// It knows no files and no connections. The caller passes the bytes. The way of the data:
//
//	metadata ──► unwrapped ──► tsdl or ctf2 ──► metadata.Trace ──► compiled ──► StreamClass, EventClass
//	packet ──► Reader.Begin: header and context ──► Reader.Next: event after event
//
// Trace.Append accepts metadata in pieces, in packets or plain, also while packets are read. It adds stream and event
// classes and never changes existing ones. Append lays out the fields of a new class and compiles them into a
// program. A program is a list of simple operations with offsets and sizes in place of names, types, alignments and
// byte orders. Fields of known size are read in runs whose bounds are checked once. To read an event, the reader
// executes the program of its class. The program writes one 64-bit word for each field into a slice, which the next
// event reuses. Text and blobs are places in the packet. Reading an event allocates nothing and looks up no names.
//
// A consumer looks up the fields of a class once, and then reads their values from events:
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
// Element returns the values of array elements. Fields inside variants and optional fields have a value only if
// Present returns true.
//
// Declarations of these parts of the formats fail: integers of more than 64 bits, floating point numbers of other
// sizes than 32 and 64 bits, headers and contexts of packets with more than 512 values, compressed or encrypted
// metadata packets or those with a checksum, and byte orders that change in the middle of a byte. The last is not
// detected if only the packet determines whether a field ends in the middle of a byte. Lengths and selectors must not
// be inside arrays, variants or optional fields, except those that also contain the field that refers to them.
//
// Packets and metadata arrive from the network. No function here panics on any input. No function allocates or loops
// by a number before it has compared the number with the available bytes and the bounds in limits.go.
package ctf
