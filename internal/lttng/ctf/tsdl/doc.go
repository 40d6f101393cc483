// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package tsdl reads the metadata language of CTF 1.8, the Trace Stream Description
// Language: text in, declarations out.
//
// The text may come in pieces that end anywhere, as tracers and relay daemons send
// it. Whatever is complete up to a semicolon outside of all braces is read at once;
// the rest waits for the next piece:
//
//	pieces ──► splitter ──► lexer ──► parser ──► metadata.Trace
//
// There is no tree between text and result: each declaration is added to the
// metadata.Trace when its last token has been read. Names of types are resolved
// here, names of other fields (tags of variants, lengths of sequences) are kept as
// paths, because what they mean depends on where a type is used.
//
// Attributes that the language doesn't have are passed over with a note, as the
// specification allows tracers their own; anything else that isn't in the
// grammar is an error with line and column, and leaves the trace as it was before
// the declaration.
package tsdl
