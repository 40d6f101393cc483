// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// Speaks is which protocol a server speaks.
type Speaks uint8

// What a server may speak.
const (
	SpeaksNeither Speaks = iota
	SpeaksGP
	SpeaksConsole
)

// probeID is the send_id of a probe's request. Its frame is no line of the text console: it
// has no line feed.
const probeID = 1

// Probe asks for the version, and says by what comes within Config.ProbeTimeout which
// protocol the server speaks. After an answer of GP, of whatever return code, the connection
// can be given to [NewClient]; text, or nothing at all, is the console, which wants a new
// connection. The error has the peer: it is ctx's, ErrClosed, the network's, or a
// *ProtocolError where what comes is neither.
func Probe(ctx context.Context, conn net.Conn, config Config) (Speaks, error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	speaks, err := probe(conn, config.withDefaults())
	if !stop() {
		speaks, err = SpeaksNeither, ctx.Err() // the deadline is its doing
	}
	if err != nil {
		return SpeaksNeither, fmt.Errorf("asking Greys server %v for its protocol: %w", conn.RemoteAddr(), err)
	}
	return speaks, nil
}

func probe(conn net.Conn, config Config) (Speaks, error) {
	if err := conn.SetDeadline(time.Now().Add(config.ProbeTimeout)); err != nil {
		return SpeaksNeither, err
	}
	request := AppendRequest(nil, Request{Version: config.Version, SendID: probeID, Type: Version, Data: []byte(nothing)})
	if _, err := conn.Write(request); err != nil {
		return SpeaksNeither, err
	}
	in := &input{from: conn}
	switch err := firstByte(in); {
	case errors.Is(err, ErrConsole):
		return SpeaksConsole, nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return SpeaksConsole, nil
	case err != nil:
		return SpeaksNeither, readError(in, err)
	}
	a, err := in.nextAnswer(config.MaxFrame)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return SpeaksNeither, &ProtocolError{Offset: in.received, Expected: "the rest of a reply", Got: fmt.Sprintf("nothing within %v", config.ProbeTimeout)}
	case err != nil:
		return SpeaksNeither, readError(in, err)
	case a.SendID != probeID:
		return SpeaksNeither, &ProtocolError{Expected: fmt.Sprintf("a reply to send_id %d", probeID), Got: fmt.Sprintf("one to %d", a.SendID)}
	case in.begin < in.end:
		return SpeaksNeither, &ProtocolError{Offset: in.offset(), Expected: "one reply", Got: "more bytes"}
	}
	return SpeaksGP, conn.SetDeadline(time.Time{})
}
