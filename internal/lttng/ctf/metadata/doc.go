// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package metadata is what the metadata of a CTF trace says: its clocks, its
// stream and event classes, and the types of their fields, as plain values.
//
// Both metadata languages end here: package tsdl reads the text of CTF 1.8,
// package ctf2 the JSON fragments of CTF 2. Package ctf compiles what is here into
// programs that read packets.
//
// Types form a graph without cycles: a type that was given a name is one value,
// however often it is used. Nothing here is changed once it has been handed out.
package metadata
