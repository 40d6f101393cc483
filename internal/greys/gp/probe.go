// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	// SpeaksNothing has not answered: the console as a rule, or a server that is silent.
	SpeaksNothing
)

// Probed is what a server is, by its answer to [Probe].
type Probed struct {
	Speaks Speaks
	// answer is GP's to the request for the version.
	answer Answer
}

// Client makes a client of the connection that was probed, where GP is spoken. Its first
// greys.VersionCommand has the answer that the probe got, and is not sent again.
func (p Probed) Client(conn net.Conn, config Config) *Client {
	c := NewClient(conn, config)
	c.lastID, c.version = probeID, &p.answer
	c.lastResp, c.hasLastResp = p.answer.RespID, true
	c.stats.Frames, c.stats.Bytes = 1, answerHeader+uint64(len(p.answer.Data))
	return c
}

// probeID is the send_id of a probe's request. Its frame is no line of the text console: it
// has no line feed.
const probeID = 1

// Probe asks for the version, and says by what comes within Config.ProbeTimeout which
// protocol the server speaks. After an answer of GP, of whatever return code, the connection
// is [Probed.Client]'s; text is the console, which wants a new connection, and so does
// nothing at all, as the console answers. The error has the peer: it is ctx's, ErrClosed,
// greys.ErrHTTP, the network's, or a *ProtocolError where what comes is neither.
func Probe(ctx context.Context, conn net.Conn, config Config) (Probed, error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	probed, err := probe(conn, config.withDefaults())
	if !stop() {
		err = ctx.Err() // the deadline is its doing
	}
	if err != nil {
		return Probed{}, fmt.Errorf("asking Greys server %v for its protocol: %w", conn.RemoteAddr(), err)
	}
	return probed, nil
}

// provokeTimeout is how long an answer to a line end may take.
const provokeTimeout = time.Second

// provoke sends a line end, and waits for the first byte once more.
func provoke(conn net.Conn, in *input) error {
	if err := conn.SetDeadline(time.Now().Add(provokeTimeout)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, "\r\n\r\n"); err != nil {
		return err
	}
	return firstByte(in)
}

func probe(conn net.Conn, config Config) (neither Probed, err error) {
	if err := conn.SetDeadline(time.Now().Add(config.ProbeTimeout)); err != nil {
		return neither, err
	}
	request := AppendRequest(nil, Request{Version: config.Version, SendID: probeID, Type: Version, Data: []byte(nothing)})
	if _, err := conn.Write(request); err != nil {
		return neither, err
	}
	in := &input{from: conn}
	err = firstByte(in)
	if config.Provoke && errors.Is(err, os.ErrDeadlineExceeded) {
		err = provoke(conn, in)
	}
	switch {
	case errors.Is(err, ErrConsole):
		return Probed{Speaks: SpeaksConsole}, nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return Probed{Speaks: SpeaksNothing}, nil
	case err != nil:
		return neither, readError(in, err)
	}
	a, err := in.nextAnswer(config.MaxFrame)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return neither, &ProtocolError{Offset: in.received, Expected: "the rest of a reply", Got: fmt.Sprintf("nothing within %v", config.ProbeTimeout)}
	case err != nil:
		return neither, readError(in, err)
	case a.SendID != probeID:
		return neither, &ProtocolError{Expected: fmt.Sprintf("a reply to send_id %d", probeID), Got: fmt.Sprintf("one to %d", a.SendID)}
	case in.begin < in.end:
		return neither, &ProtocolError{Offset: in.offset(), Expected: "one reply", Got: "more bytes"}
	}
	return Probed{Speaks: SpeaksGP, answer: a}, conn.SetDeadline(time.Time{})
}
