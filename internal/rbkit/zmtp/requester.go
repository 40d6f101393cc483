// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// Requester is a REQ socket with one connection (RFC 28). It is for one goroutine.
//
// The requester reads nothing between requests: to a replier that sends PING we are silent, and
// it may close the connection.
type Requester struct {
	traffic *traffic
}

// Request makes a dialled connection the connection of a REQ socket. The requester owns it, and
// Close closes it. If Request fails, it closes the connection. Errors are *Error.
func Request(ctx context.Context, conn net.Conn, options Options) (*Requester, error) {
	t, err := connect(ctx, conn, Req, options)
	if err != nil {
		return nil, err
	}
	// A replier that answers only PING is useless, so a request has a deadline and no PING.
	t.silence.asks = false
	return &Requester{traffic: t}, nil
}

// Ask sends a request of at least one part and waits for the reply. The caller may use the reply
// until the next call. Errors are *Error and close the connection, so a late reply is never the
// reply to another request.
func (r *Requester) Ask(ctx context.Context, request ...[]byte) (reply Message, err error) {
	err = r.traffic.runUnder(ctx, func() (err error) {
		reply, err = r.ask(request)
		return err
	})
	return reply, err
}

func (r *Requester) ask(request [][]byte) (Message, error) {
	t := r.traffic
	if len(request) == 0 {
		return nil, errors.New("expected a request of at least one part, got none")
	}
	if err := r.checkUnasked(); err != nil {
		return nil, err
	}
	// A request begins with an empty part, the end of the way back.
	t.out = appendHeader(t.out[:0], flagMore, 0)
	t.out = AppendMessage(t.out, request...)
	if err := t.write(t.out); err != nil {
		return nil, err
	}
	t.silence.limit = time.Now().Add(t.options.Timeout)
	message, err := t.receive()
	if err != nil {
		return nil, err
	}
	if len(message) < 2 || len(message[0]) > 0 {
		return nil, &ProtocolError{
			Offset:   t.in.offset(),
			Expected: "a reply of an empty part and at least one other",
			Got:      fmt.Sprintf("%d parts, the first %s", len(message), quoted(message[0])),
		}
	}
	return message[1:], nil
}

// checkUnasked looks for a message after the last reply.
func (r *Requester) checkUnasked() error {
	rest := r.traffic.in.held()[r.traffic.spent:]
	if len(rest) == 0 || rest[0]&flagCommand != 0 {
		return nil
	}
	return &ProtocolError{
		Offset:   r.traffic.in.offset() + int64(r.traffic.spent),
		Expected: "nothing before the next request",
		Got:      quoted(rest),
	}
}

// Close closes the connection. It may be called again.
func (r *Requester) Close() error { return closeOnce(r.traffic.conn) }
