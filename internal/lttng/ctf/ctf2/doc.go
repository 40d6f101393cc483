// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package ctf2 reads the metadata of CTF 2: fragments of JSON in, declarations out.
//
// Each fragment stands behind an ASCII record separator (RFC 7464) and describes one
// thing: the trace, a clock, a data stream class, an event record class, or gives a
// field class a name. Fragments may come in pieces that end anywhere.
//
// What the specification has and this package doesn't: bit orders that differ from
// the byte order's own, integers and bit arrays of more than 64 bits, floating point
// numbers other than of 32 and 64 bits, and extensions. Each is refused where it
// stands. Attributes are passed over: they don't change how a trace is read.
package ctf2
