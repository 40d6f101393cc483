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
// While nothing is asked nothing is read either: a replier that sends PING finds us
// silent, and may close the connection.
type Requester struct {
	traffic *traffic
}

// Request makes conn, which was dialled, a REQ socket's. The connection is the
// requester's then, to be closed by Close; it is closed where Request fails. Errors are
// *Error.
func Request(ctx context.Context, conn net.Conn, options Options) (*Requester, error) {
	t, err := connect(ctx, conn, Req, options)
	if err != nil {
		return nil, err
	}
	// A replier that answers PING but not us is of no use: only the answer counts.
	t.silence.asks = false
	return &Requester{traffic: t}, nil
}

// Ask sends a request of at least one part and waits for the reply, which is the caller's
// until it asks again. Errors are *Error, and the connection is closed: a reply that
// comes late can't be taken for that to another request.
func (r *Requester) Ask(ctx context.Context, request ...[]byte) (reply Message, err error) {
	err = r.traffic.use(ctx, func() (err error) {
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
	// Before a request stands an empty part, the end of the way that a reply takes back.
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

// checkUnasked finds a message that came with the last reply.
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
