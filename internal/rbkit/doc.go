// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package rbkit decodes and encodes the messages of Rbkit's protocol 2.1, in both dialects
// of that version. A Ruby process reports its garbage collector, its objects and its stacks.
//
// It knows commands, their replies, and published messages. It knows no sockets, and
// counts, sums and stores nothing.
//
// # Messages
//
// A published message is an event collection in msgpack, and has any number of events.
// Reader reads them without copies: texts and lists point into the message. Nested lists
// that may be long, such as the references of an object, are checked when their event is
// read, and decoded when the caller iterates over them. So no message needs more memory
// than its bytes.
//
// Reader returns all events of a broken message before its error.
//
// # Dialects
//
// The released server numbers events otherwise than the document, and both have the version 2.1.
// A handshake shows the dialect, and so does any published message: Dialect.
package rbkit
