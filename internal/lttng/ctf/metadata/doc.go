// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package metadata holds the declarations of a CTF trace: its clocks, its stream and event classes, and the types of
// their fields, as plain values.
//
// It is the result of both metadata languages: package tsdl reads the text of CTF 1.8, package ctf2 the JSON
// fragments of CTF 2. Package ctf compiles the declarations into programs that read packets.
//
// Types form a graph without cycles: a named type is one value, independent of the number of its uses. No value
// changes after the parser has added it to the Trace.
package metadata
