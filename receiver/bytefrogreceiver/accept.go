// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"errors"
	"net"
	"sync"
	"time"

	"go.uber.org/zap"
)

const (
	// acceptPause is the first pause after a connection could not be accepted, as
	// when the process has too many open files; maxAcceptPause the longest.
	acceptPause    = 5 * time.Millisecond
	maxAcceptPause = time.Second
	// maxRefusals is how many connections beyond limits.max_connections are told
	// so at once; the others are closed without a word.
	maxRefusals = 64
)

// accept takes connections until the listener is closed.
func (r *bytefrogReceiver) accept(listener net.Listener) {
	defer r.serving.Done()
	slots := make(chan struct{}, r.env.config.Limits.MaxConnections)
	refusals := make(chan struct{}, maxRefusals)
	var pause time.Duration
	for {
		conn, err := listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			pause = min(max(2*pause, acceptPause), maxAcceptPause)
			r.env.telemetry.acceptError()
			r.env.logger.Warn("A connection could not be accepted", zap.Error(err), zap.Duration("next_try_in", pause))
			if !r.sleep(pause) {
				return
			}
			continue
		}
		pause = 0
		select {
		case slots <- struct{}{}:
			r.begin(conn, func() { <-slots }, r.serve)
			continue
		default:
		}
		select {
		case refusals <- struct{}{}:
			r.begin(conn, func() { <-refusals }, r.refuseConnection)
		default:
			r.env.telemetry.refused(refusedConnections)
			_ = conn.Close()
		}
	}
}

// begin starts the goroutine of a connection.
func (r *bytefrogReceiver) begin(conn net.Conn, release func(), serve func(net.Conn, time.Time)) {
	// The deadline is set before the shutdown can see the connection and set its own.
	until := time.Now().Add(r.env.config.Limits.HandshakeTimeout)
	_ = conn.SetReadDeadline(until)
	if !r.handshakes.begin(conn) {
		_ = conn.Close()
		release()
		return
	}
	r.serving.Add(1)
	r.env.telemetry.connections(1)
	go func() {
		defer r.serving.Done()
		defer release()
		defer r.env.telemetry.connections(-1)
		defer r.handshakes.done(conn)
		serve(conn, until)
	}()
}

func (r *bytefrogReceiver) refuseConnection(conn net.Conn, _ time.Time) {
	limit := &limitError{setting: "limits.max_connections", limit: r.env.config.Limits.MaxConnections}
	r.env.logger.Warn("A connection is refused", zap.Error(limit), zap.Stringer("peer", conn.RemoteAddr()))
	r.refuse(conn, refusedConnections, limit.Error())
}

// sleep waits, and reports false when the receiver shuts down meanwhile.
func (r *bytefrogReceiver) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.stopping:
		return false
	}
}

// handshakes are the connections of which it is not known yet what they are.
type handshakes struct {
	mu     sync.Mutex
	open   map[net.Conn]struct{}
	closed bool
}

// begin reports false when the receiver takes no more connections.
func (h *handshakes) begin(conn net.Conn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	if h.open == nil {
		h.open = map[net.Conn]struct{}{}
	}
	h.open[conn] = struct{}{}
	return true
}

func (h *handshakes) done(conn net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.open, conn)
}

// close ends the waiting for first messages. A hello that has come already is
// answered.
func (h *handshakes) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for conn := range h.open {
		_ = conn.SetReadDeadline(time.Now())
	}
}
