// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package zmtp is ZeroMQ's message transport protocol, 3.0 and 3.1, as much of it as
// tracers use: SUB and REQ sockets as clients, PUB and REP sockets as servers, with the
// security mechanisms NULL and PLAIN.
//
// It knows what stands where and what may follow what. It does not know what is in
// messages. RFC numbers are those of rfc.zeromq.org: 23 is ZMTP 3.0, 37 is 3.1, 24 is
// PLAIN, 28 and 29 are what the sockets do.
//
// # Stages
//
// A connection goes through three stages, and each is a type, so that nothing can be
// said too early:
//
//	opening   the greetings, 64 bytes from each side: are both ZMTP 3, and agree on a
//	          mechanism?
//	greeted   the handshake: is the password right, and do the sockets fit each other?
//	traffic   messages and commands
//
// Subscribe and Request take a connection through the first two, and return what can be
// done in the third. A Requester has only Ask, which sends and receives: the strict turns
// of a REQ socket cannot be broken.
//
// # Contexts, deadlines, goroutines
//
// Every call ends when its context ends, which closes the connection: what was cut off
// cannot be used further. The opening and the handshake have one deadline together. In
// traffic every 64 KiB of a message have one, and so has every write. Between messages
// nothing has to come for as long as the other side likes, but it is asked with PING
// whether it is there, if it speaks 3.1.
//
// No goroutine outlives the call that started it. Only Serve starts some, and waits for
// their end.
//
// # Memory
//
// A connection has one buffer, which messages lie in while they are handled. It grows as
// bytes come, never by what is announced, up to Limits, and stays as large as the
// largest message was.
package zmtp
