// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package gp speaks the GREYS-PROTOCOL (GP), the binary protocol of a Greys server. Its document is greys-protocol.txt;
// no known release of the server speaks it. The package has both sides: a [Client], and the parts to read and write as
// a server, for a simulator.
//
// Requests and replies are frames: a header with big-endian numbers, and JSON.
//
//	request                    reply
//	version of the protocol 2  send_id, the request's 4
//	send_id                 4  resp_id                4
//	type                    2  return code            4
//	length of the data      4  length of the data     4
//
// A request can have any number of replies, and replies to several requests can alternate. The last reply to a request
// is marked. Only the send_id connects a reply with its request. A request ends only by the server's last reply or by
// the end of the connection.
//
// [Config] and these rules decide the open points of the document. An unknown return code is a failure, and ends the
// request. Numbers and booleans may be strings, as in the document's samples, or JSON values. Data that are not JSON
// are read once more as YAML, which allows the trailing commas and single quotes of the samples; if that fails too,
// only this frame is dropped. A frame that is too long is dropped together with its request. Times of recorded calls
// have no zone.
package gp
