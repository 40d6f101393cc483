// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package zmtp has the part of ZeroMQ's message transport protocol, 3.0 and 3.1, that
// tracers use: SUB and REQ sockets as clients, PUB and REP sockets as servers, with the
// security mechanisms NULL and PLAIN.
//
// It does not know the contents of messages. RFC numbers are those of rfc.zeromq.org: 23
// is ZMTP 3.0, 37 is 3.1, 24 is PLAIN, 28 and 29 are the sockets.
//
// # Stages
//
// A connection goes through three stages. Each is a type, so no function can send too early:
//
//	opening   the greetings, 64 bytes from each side: are both ZMTP 3, and agree on a
//	          mechanism?
//	greeted   the handshake: is the password right, and do the sockets fit each other?
//	traffic   messages and commands
//
// Subscribe and Request complete the first two, and return a type for the third. A
// Requester has only Ask, which sends and receives: the strict turns of a REQ socket
// cannot be broken.
//
// # Contexts, deadlines, goroutines
//
// Every call ends when its context ends, which closes the connection: an interrupted
// connection cannot be used again. The opening and the handshake have one deadline
// together. In traffic every 64 KiB of a message have one, and so has every write. The
// time between messages has no limit, but a PING checks the other side, if it speaks 3.1.
//
// No goroutine outlives the call that started it. Only Serve starts some, and waits for
// their end.
//
// # Memory
//
// A connection has one buffer for the message that is handled. It grows with the received
// bytes, never with announced sizes, up to Limits. It stays as large as the largest
// message was.
package zmtp
