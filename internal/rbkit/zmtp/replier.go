// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"context"
	"fmt"
	"net"
	"sync"
)

// Replier is a REP socket that serves any number of clients, one request at a time (RFC
// 28).
type Replier struct {
	options ServerOptions
	mu      sync.Mutex // locked while a request is answered
	reply   func(request Message) (reply [][]byte)
}

// NewReplier returns a replier that answers with the result of reply, one call at a time. reply
// must not use the request after its return. A reply without parts is not sent, and the client
// waits until its time-out.
func NewReplier(options ServerOptions, reply func(request Message) [][]byte) *Replier {
	return &Replier{options: options.withDefaults(), reply: reply}
}

// Serve serves clients of the listener until ctx ends. Then it returns nil, or before that the
// error of the listener. It closes the listener and all connections, and ends all its goroutines.
func (r *Replier) Serve(ctx context.Context, l net.Listener) error {
	return r.options.serve(ctx, l, r.client)
}

// client serves one client.
func (r *Replier) client(ctx context.Context, conn net.Conn) error {
	t, err := accept(ctx, conn, Rep, r.options.Options)
	if err != nil {
		return err
	}
	return t.runUnder(ctx, func() error {
		for {
			request, err := t.receive()
			if err != nil {
				return err
			}
			if err := r.answer(t, request); err != nil {
				return err
			}
		}
	})
}

// answer answers one request. The reply has the same parts up to the first empty part, the way
// back.
func (r *Replier) answer(t *traffic, request Message) error {
	way := 0
	for way < len(request) && len(request[way]) > 0 {
		way++
	}
	if way+1 >= len(request) {
		return &ProtocolError{
			Offset:   t.in.offset(),
			Expected: "a request: an empty part, and at least one other behind it",
			Got:      fmt.Sprintf("%d parts", len(request)),
		}
	}
	r.mu.Lock()
	reply := r.reply(request[way+1:])
	r.mu.Unlock()
	if len(reply) == 0 {
		return nil
	}
	t.out = t.out[:0]
	for _, part := range request[:way+1] {
		t.out = append(appendHeader(t.out, flagMore, len(part)), part...)
	}
	t.out = AppendMessage(t.out, reply...)
	return t.write(t.out)
}
