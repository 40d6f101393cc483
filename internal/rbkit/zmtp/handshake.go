// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"
)

// greeted is a connection after the greetings: ZMTP 3, and the same mechanism.
type greeted struct {
	*connection
	minor    byte // agreed
	deadline time.Time
}

// connect opens a connection as a client, with greeting and handshake. An error closes it.
func connect(ctx context.Context, conn net.Conn, socketType SocketType, options Options) (*traffic, error) {
	return open(ctx, conn, socketType, options, false)
}

// accept opens a connection as a server, with greeting and handshake. An error closes it.
func accept(ctx context.Context, conn net.Conn, socketType SocketType, options Options) (*traffic, error) {
	return open(ctx, conn, socketType, options, true)
}

func open(ctx context.Context, conn net.Conn, socketType SocketType, options Options, server bool) (*traffic, error) {
	c := newConnection(conn, options)
	release := c.under(ctx)
	stage := StageGreeting
	deadline := time.Now().Add(c.options.Timeout)
	g, err := opening{c}.exchangeGreetings(deadline, server)
	if err == nil {
		stage = StageHandshake
		err = g.handshake(socketType, server)
	}
	if release() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close() // err is the cause
		return nil, c.fail(stage, err)
	}
	return newTraffic(g), nil
}

// handshake performs the handshake of the mechanism, as a client or as a server.
func (g greeted) handshake(socketType SocketType, server bool) error {
	metadata := appendMetadata(nil, socketType)
	fits := func(theirs command) error {
		other, wrong := socketTypeIn(theirs.data, theirs.dataOffset)
		if wrong != nil {
			return wrong
		}
		if !socketType.fits(other) {
			return &ProtocolError{Offset: theirs.dataOffset, Expected: "a socket of type " + joined(socketType.partners()), Got: fmt.Sprintf("%q", string(other))}
		}
		return nil
	}
	if server {
		return g.options.Security.handshakeAsServer(g, metadata, fits)
	}
	theirs, err := g.options.Security.handshakeAsClient(g, metadata)
	if err != nil {
		return err
	}
	return fits(theirs)
}

// joined returns the types for a sentence.
func joined(types []SocketType) string {
	texts := make([]string, len(types))
	for i, t := range types {
		texts[i] = string(t)
	}
	return strings.Join(texts, " or ")
}

// expect receives a command of a name. Instead of it, ERROR is a *RefusedError.
func (g greeted) expect(name string) (command, error) {
	c, err := g.nextCommand(name)
	switch {
	case err != nil:
		return command{}, err
	case c.name == commandError:
		return command{}, refusal(c)
	case c.name != name:
		return command{}, &ProtocolError{Offset: c.dataOffset - int64(len(c.name)), Expected: "the command " + name, Got: quoted([]byte(c.name))}
	}
	return c, nil
}

// nextCommand receives a command. It copies the data, because their place is reused.
func (g greeted) nextCommand(expected string) (command, error) {
	what := "the command " + expected
	if err := g.hold(1, what); err != nil {
		return command{}, err
	}
	at := g.in.offset()
	flags := g.in.held()[0]
	if wrong := checkFlags(flags); wrong != nil {
		wrong.Offset += at
		return command{}, wrong
	}
	if flags&flagCommand == 0 {
		return command{}, &ProtocolError{Offset: at, Expected: what, Got: "a frame of a message"}
	}
	n := headerSize(flags)
	if err := g.hold(n, what); err != nil {
		return command{}, err
	}
	h, wrong := parseHeader(g.in.held()[:n])
	if wrong == nil && h.size > maxCommand {
		wrong = &ProtocolError{Offset: 1, Expected: fmt.Sprintf("a command of at most %d bytes", maxCommand), Got: fmt.Sprintf("a size of %d", h.size)}
	}
	if wrong != nil {
		wrong.Offset += at
		return command{}, wrong
	}
	g.in.drop(n)
	if err := g.hold(int(h.size), what); err != nil {
		return command{}, err
	}
	body := append([]byte(nil), g.in.held()[:h.size]...)
	g.in.drop(len(body))
	c, wrong := parseCommand(body, at+int64(n))
	if wrong != nil {
		return command{}, wrong
	}
	return c, nil
}

// hold waits until n bytes are held.
func (g greeted) hold(n int, what string) error {
	for len(g.in.held()) < n {
		if err := g.fill(g.deadline, what); err != nil {
			return err
		}
	}
	return nil
}

// refuse sends ERROR with a reason, and returns why.
func (g greeted) refuse(reason string, why error) error {
	// why closes the connection in any case.
	_ = g.write(appendCommand(nil, commandError, append([]byte{byte(len(reason))}, reason...)))
	return why
}
