// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/callbraid/callbraid/internal/componentkit/socket"
)

// Serve serves one viewer. It returns nil when the viewer closes the connection, and an error when ctx ends or the
// viewer violates the protocol. Several viewers can be served at the same time. The caller closes the connection. As
// with a real relay daemon, it may be on any network, and there is no authentication.
func (r *Relay) Serve(ctx context.Context, conn net.Conn) error {
	var w interrupter
	w.set(ctx, conn)
	defer w.unset()
	s := &server{ctx: ctx, conn: conn, timeout: r.options.Timeout, viewer: relayViewer{relay: r}}
	defer s.viewer.close()
	if err := s.serve(); err != nil {
		return fmt.Errorf("viewer %s: %w", conn.RemoteAddr(), err)
	}
	return nil
}

// server transfers the requests and replies of one viewer.
type server struct {
	ctx     context.Context
	conn    net.Conn
	timeout time.Duration
	viewer  relayViewer
	request [maxRequestSize]byte
	reply   []byte // reused
}

// maxRequestSize is the size in bytes of the longest request.
const maxRequestSize = headerSize + 20

func (s *server) serve() error {
	for {
		request, err := s.receive()
		var unknown *UnknownCommandError
		switch {
		case errors.As(err, &unknown):
			return errors.Join(err, s.send(unknownCommand()))
		case err != nil || request == nil:
			return err
		}
		if s.reply, err = s.viewer.answer(s.reply[:0], request); err != nil {
			return fmt.Errorf("%s: %w", request.Command(), err)
		}
		if err := s.send(s.reply); err != nil {
			return fmt.Errorf("%s: %w", request.Command(), err)
		}
	}
}

// receive reads one request. It returns nil without an error if the viewer has closed the connection. There is a time
// limit inside a request, but none before it.
func (s *server) receive() (Request, error) {
	got, begun := 0, false
	for wanted := headerSize; ; {
		var n int
		var err error
		if !begun {
			begun = got > 0
			err = s.deadline(begun)
		}
		if err == nil {
			n, err = s.conn.Read(s.request[got:wanted])
			got += n
		}
		if err != nil && got < wanted {
			if got == 0 && socket.IsClosed(err) {
				return nil, nil
			}
			return nil, &TransferError{Offset: got, Wanted: wanted - got, Err: transferCause(s.ctx, err)}
		}
		if got < wanted {
			continue
		}
		if wanted, err = requestSize(s.request[:got]); err != nil {
			return nil, err
		}
		if got == wanted {
			request, _, err := DecodeRequest(s.request[:got])
			return request, err
		}
	}
}

func (s *server) send(reply []byte) error {
	for sent := 0; sent < len(reply); {
		n, err := 0, s.deadline(true)
		if err == nil {
			n, err = s.conn.Write(reply[sent:min(len(reply), sent+progress)])
			sent += n
		}
		if err != nil {
			return &TransferError{Reply: true, Offset: sent, Wanted: len(reply) - sent, Err: transferCause(s.ctx, err)}
		}
	}
	return nil
}

// deadline sets the deadline if soon is set, and otherwise removes it. It fails if the context has ended.
func (s *server) deadline(soon bool) error {
	var at time.Time
	if soon {
		at = time.Now().Add(s.timeout)
	}
	if err := s.conn.SetDeadline(at); err != nil {
		return err
	}
	return context.Cause(s.ctx)
}
