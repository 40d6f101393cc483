// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package ctf2 reads the metadata of CTF 2. Its input is fragments of JSON, its output is declarations.
//
// Each fragment follows an ASCII record separator (RFC 7464) and declares one thing: the trace, a clock, a data
// stream class, an event record class, or a name of a field class. Fragments may arrive in pieces that end anywhere.
//
// Fragments with these parts of the specification are errors: bit orders that differ from that of the byte order,
// integers and bit arrays of more than 64 bits, floating point numbers of other sizes than 32 and 64 bits, and
// extensions. Most attributes are ignored, because they do not change how to read a trace.
package ctf2
