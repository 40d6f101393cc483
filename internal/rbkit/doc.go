// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package rbkit is Rbkit's message protocol, 2.1, in both dialects that are called so:
// what a Ruby process says of its garbage collector, its objects and its stacks.
//
// It knows commands, what stands in their replies and in published messages, and how both
// are written. It knows no sockets, and doesn't count, sum or remember anything.
//
// # Messages
//
// A published message is an event collection in msgpack, and has any number of events.
// Reader goes through them without making anything of its own: texts and lists lie in the
// message. What is nested and may be long, as the references of an object, is checked when
// its event is read, and decoded when it is gone through, so that a message costs no more
// memory than it has bytes, whatever is in it.
//
// A message that is broken somewhere gives every event before that place.
//
// # Dialects
//
// The released server numbers its events otherwise than the document, and both say that
// they are 2.1. A handshake tells them apart, or else any published message does: Dialect.
package rbkit
