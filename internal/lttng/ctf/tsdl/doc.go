// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package tsdl reads the metadata language of CTF 1.8, the Trace Stream Description Language. Its input is text, its
// output is declarations.
//
// Tracers and relay daemons send the text in pieces that end anywhere. The parser reads all declarations that are
// complete, up to the last semicolon outside all braces. The rest waits for the next piece:
//
//	pieces ──► splitter ──► lexer ──► parser ──► metadata.Trace
//
// There is no tree between text and result. The parser adds each declaration to the metadata.Trace when it has read
// its last token. It resolves names of types. Names of other fields (tags of variants, lengths of sequences) stay
// paths, because their meaning depends on the place where a type is used.
//
// The parser ignores unknown attributes and adds a note, because the specification allows tracers to add their own.
// Any other violation of the grammar is an error with line and column. Then the trace stays as it was before the
// declaration.
package tsdl
