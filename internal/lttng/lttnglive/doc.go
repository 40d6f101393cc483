// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package lttnglive is the LTTng live protocol: how a viewer reads the traces of a
// relay daemon while they are recorded. It has the bytes of every request and reply,
// the viewer's side of a connection, and the relay daemon's.
//
// It knows what stands where, in which order things may be asked for, and what a
// relay daemon answers when. It does not know what is in packets and metadata: that
// is CTF. It keeps no connections, does not poll, merge streams or connect again, and
// starts nothing that outlives a call.
//
// # The way of the data
//
// A viewer asks, the relay daemon answers, one command at a time on one TCP connection
// (port 5344), in big endian:
//
//	Connect             agree on a version: Viewer
//	Viewer.Sessions     which sessions are there?
//	Viewer.Attach       the streams of one of them: Attachment
//	Metadata            for each trace, before its first packet, and when an index has
//	                    FlagNewMetadata
//	NextIndex, Packet   for each stream of packets, until it hangs up
//	NewStreams          when an index has FlagNewStreams, while there are no streams,
//	                    and when all have hung up
//	Detach
//
// What is asked for too early cannot be written: a session is listed by a connection
// that has agreed on a version, and read by an attachment. DecodeRequest, DecodeReply
// and their opposites are for whoever has the bytes without a connection.
//
// The other side is Relay, which serves Recordings. Package capture makes one of the
// bytes that a real relay daemon and a viewer exchanged.
//
// # Where the document errs
//
// The document of 2013 has a packet refused until new metadata was read. Relay daemons
// do that up to 2.6; later ones only set the flag. It doesn't know the commands
// "create session", which must come before "attach session", and "detach session"
// (from 2.8 on). From 2.15 on session entries have another layout.
//
// After "lttng clear" a relay daemon may announce metadata that never comes: that is
// why a time-out makes a connection unusable.
package lttnglive
