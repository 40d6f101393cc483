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

// Speaks is the protocol of a server, as far as a probe shows.
type Speaks uint8

// The results of a probe.
const (
	SpeaksNeither Speaks = iota
	SpeaksGP
	SpeaksConsole
	// SpeaksNothing means that the server has not answered: usually the console, or a silent server.
	SpeaksNothing
)

// Probed is the result of [Probe].
type Probed struct {
	Speaks Speaks
	// answer is the GP answer to the request for the version.
	answer Answer
}

// Client returns a client of the probed connection of a GP server. Its first javamethods.VersionCommand uses the
// probe's answer, and sends no request.
func (p Probed) Client(conn net.Conn, config Config) *Client {
	c := NewClient(conn, config)
	c.lastID, c.version = probeID, &p.answer
	c.lastResp, c.hasLastResp = p.answer.RespID, true
	c.stats.Frames, c.stats.Bytes = 1, answerHeader+uint64(len(p.answer.Data))
	return c
}

// probeID is the send_id of a probe's request. The frame contains no line feed, so the text console does not read it as
// a line.
const probeID = 1

// Probe requests the version and determines the server's protocol by the bytes that arrive within Config.ProbeTimeout.
// After a GP answer with any return code, the connection belongs to [Probed.Client]. Text shows the console, which
// needs a new connection. Released consoles send nothing, so silence needs a new connection too. The error includes the
// peer. It is ctx's error, ErrClosed, greys.ErrHTTP, an error of the network, or a *ProtocolError if the bytes fit
// neither protocol.
func Probe(ctx context.Context, conn net.Conn, config Config) (Probed, error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	probed, err := probe(conn, config.withDefaults())
	if !stop() {
		err = ctx.Err() // the deadline came from ctx
	}
	if err != nil {
		return Probed{}, fmt.Errorf("asking Greys server %v for its protocol: %w", conn.RemoteAddr(), err)
	}
	return probed, nil
}

// provokeTimeout limits the time for the answer to a line end.
const provokeTimeout = time.Second

// provoke sends a line end and waits again for the first byte.
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
