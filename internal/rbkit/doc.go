// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package rbkit is the message protocol of Rbkit, version 2.1, which a Ruby process
// speaks: its events as values, in both of its dialects, and the commands that it obeys.
//
// It reads bytes and writes bytes. It knows no sockets, which are package zmtp's, and not
// what events mean together.
//
// # Messages
//
// Everything is MessagePack. What a server publishes is an event collection: a map of its
// type, its time, its number, and an array of events. An event is a map of its type, its
// time and, where it has one, its payload. Keys are numbers (section "Event types" of the
// specification), but for those of the statistics and of the handshake.
//
// There are two dialects that number the types of events differently, and call themselves
// by the same version: see Dialect. Each message says by its first bytes which it is in.
//
// # Reading
//
// A Decoder tells a Visitor of one event after the other, in their order. Texts lie in the
// message, so they are valid until the Visitor's method returns; slices are used again.
// Nothing is allocated for an event.
//
// What a message announces is never believed: arrays that are too short, or that claim
// more than came, end in an *Error, which says where. The Visitor keeps what it was told
// before: some servers announce one element more than they send.
//
// # Writing
//
// A Collection is a Visitor that writes what it is told of, so that reading a message and
// writing it again gives the same bytes. It is for simulators and tests.
package rbkit
