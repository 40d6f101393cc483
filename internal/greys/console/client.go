// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"net"
	"sync/atomic"

	"github.com/callbraid/callbraid/internal/greys"
)

// Client asks a server. Its methods may be called from many goroutines; its fields are not
// changed then.
type Client struct {
	// Dial makes a connection to the server. The client closes it.
	Dial func(ctx context.Context) (net.Conn, error)
	Config

	malformed, unanswered atomic.Uint64
}

// Stats are what went wrong, since the client was made.
type Stats struct {
	// Malformed is how many commands were given up for an answer that is not understood.
	Malformed uint64
	// Unanswered is how many commands were aborted, and the server did not say in time that
	// they ended. What they put into classes is in them until a [greys.ResetCommand].
	Unanswered uint64
}

// Stats gives the numbers of now.
func (c *Client) Stats() Stats {
	return Stats{Malformed: c.malformed.Load(), Unanswered: c.unanswered.Load()}
}

// Run asks for a command, on a connection of its own, and calls each for every answer, in
// order; an answer is valid until each returns. It gives nil when the command has ended by
// itself, ctx's error when ctx has ended, after having aborted the command, and otherwise
// an *[Error].
//
// While each does not return nothing is read, and the server does not wait idly: it tries
// to send over and over, in the traced program.
func (c *Client) Run(ctx context.Context, command greys.Command, each func(greys.Reply)) error {
	return errors.ErrUnsupported
}
