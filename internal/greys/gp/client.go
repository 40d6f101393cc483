// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"context"
	"errors"
	"net"

	"github.com/callbraid/callbraid/internal/greys"
)

// Client asks a server over one connection, which it owns. Its methods may be called from
// many goroutines.
type Client struct {
	conn   net.Conn
	config Config
}

// NewClient makes a client of a connection, on which nothing was said yet or [Probe] was
// right. It says nothing before it is asked, or serves.
func NewClient(conn net.Conn, config Config) *Client {
	return &Client{conn: conn, config: config.withDefaults()}
}

// Serve reads replies, and sends heartbeats, until the connection or ctx ends; then it has
// closed the connection, which ends what the server does for it, and every Run. The error
// is never nil: ctx's, ErrSilent, a *ProtocolError, a *VersionError, or the network's, with
// the peer. It is called once.
func (c *Client) Serve(ctx context.Context) error { return errors.New("not there yet") }

// Run asks, and calls each for every answer in order, until the server says that there are
// no more: nil. Otherwise the error has the peer and the command: ctx's, where it ended first
// (the server is not told, which GP has no way for: what it goes on to send is ignored); a
// *CodeError, or greys.ErrUnsupported where GP, or Config.Codes, has no such request;
// ErrTooSlow, ErrTooMany; or what ended the connection. An answer is valid until each returns.
func (c *Client) Run(ctx context.Context, command greys.Command, each func(greys.Reply)) error {
	return errors.New("not there yet")
}

// Stats count what came until now.
func (c *Client) Stats() Stats { return Stats{} }
