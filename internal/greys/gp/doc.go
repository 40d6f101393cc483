// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package gp is the GREYS-PROTOCOL, or GP: the binary protocol of a Greys server that its
// document (greys-protocol.txt) describes, which no released server is known to speak. It
// knows both sides: a [Client] asks, and what a server reads and writes is here for one that
// is played.
//
// Requests and replies are frames: a header, whose numbers are big endian here, and JSON.
//
//	request                    reply
//	version of the protocol 2  send_id, the request's 4
//	send_id                 4  resp_id                4
//	type                    2  return code            4
//	length of the data      4  length of the data     4
//
// Requests are answered in any order, and with any number of replies, of which the last says
// that it is. Replies are matched with requests by send_id alone. Nothing ends a request but
// the server, and the end of the connection.
//
// What the document leaves open is decided in [Config], and by these rules: a return code
// that it doesn't name is a failure, and an end. Numbers and truths may be texts, as in its
// samples, or JSON's own. Data that is no JSON is read as YAML once more, which knows its
// samples' trailing commas and single quotes; else its frame is given up alone. So is
// one that is too long, with its request. Times of recorded calls have no zone.
package gp
