// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package lttnglive implements the LTTng live protocol, with which a viewer reads the traces of a relay daemon while
// they are recorded. It has the bytes of every request and reply, the viewer's side of a connection, and the relay
// daemon's side.
//
// It knows the layout of requests and replies, their permitted order, and the conditions of each answer of a relay
// daemon. The content of packets and metadata is CTF, which it does not know. It does not open connections, poll,
// merge streams or reconnect, and starts nothing that outlives a call.
//
// # The way of the data
//
// A viewer sends requests and the relay daemon replies, one command at a time on one TCP connection (port 5344), in
// big endian:
//
//	Connect             agree on a version: Viewer
//	Viewer.Sessions     list the sessions
//	Viewer.Attach       the streams of one of them: Attachment
//	Metadata            for each trace, before its first packet, and when an index has
//	                    FlagNewMetadata
//	NextIndex, Packet   for each stream of packets, until it hangs up
//	NewStreams          when an index has FlagNewStreams, while there are no streams,
//	                    and when all have hung up
//	Detach
//
// The types prevent requests in the wrong order: a connection with an agreed version lists sessions, and an
// attachment reads one. DecodeRequest, DecodeReply and their opposites work on bytes without a connection.
//
// The other side is Relay, which serves Recordings. Package capture makes a Recording from the bytes between a real
// relay daemon and a viewer.
//
// # Errors in the protocol document
//
// By the document of 2013, relay daemons refuse a packet until new metadata is read. Relay daemons up to 2.6 do that,
// later ones only set the flag. The document does not contain the commands "create session", which must precede
// "attach session", and "detach session" (since 2.8). Since 2.15, session entries have another layout.
//
// After "lttng clear", a relay daemon may announce metadata that never arrives. Therefore a connection is unusable
// after a time-out.
package lttnglive
