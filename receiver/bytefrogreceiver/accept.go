// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"net"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/slots"
)

// heardBeyond is how many connections beyond limits.max_connections are read, so that their
// agents can be refused. The receiver closes further ones immediately, and an agent then ends its
// program.
const heardBeyond = 64

// newSlots returns the slots of the receiver's connections.
func newSlots(env *environment) *slots.Slots {
	limits := &env.config.Limits
	return slots.New(slots.Options{
		Max: limits.MaxConnections, Setting: settingMaxConnections,
		PerAddress: limits.MaxConnectionsPerAddress, SettingPerAddress: settingPerAddress,
		Beyond: heardBeyond, Grace: env.timing.slotGrace,
		Closed: env.telemetry.Evicted, Logger: env.Logger,
	})
}

// accept accepts connections until the listener is closed.
func (r *bytefrogReceiver) accept(listener net.Listener) {
	slots.Accept(r.env.receiver.Serving, listener, r.admit, func(err error, pause time.Duration) {
		r.env.telemetry.AcceptError()
		r.env.Logger.Warn("A connection could not be accepted", zap.Error(err), zap.Duration("next_try_in", pause))
	})
}

// admit starts the goroutine of a connection, in the first of these ways that works:
//
//  1. A slot is free, or a connection without a handshake loses its own.
//  2. Connections that linger make room.
//  3. The connection is only read to refuse it.
//  4. One connection that lingers makes room for that.
//
// Otherwise the receiver closes it.
func (r *bytefrogReceiver) admit(socket net.Conn) {
	slot, full := r.slots.Admit(socket)
	if full != nil && r.env.lingering.makeRoom(r.slots.Open()+1-r.env.config.Limits.MaxConnections) {
		slot, full = r.slots.Admit(socket)
	}
	var refusal *limitError
	if full != nil {
		refusal = &limitError{setting: full.Setting, limit: full.Limit}
		slot, full = r.slots.AdmitBeyond(socket)
	}
	if full != nil && r.env.lingering.makeRoom(1) {
		slot, full = r.slots.AdmitBeyond(socket)
	}
	if full != nil {
		r.env.telemetry.Refused(refusedUnheard)
		if since, due := r.unread.Count(r.env.Now()); due {
			r.env.Logger.Warn("A connection is closed before the handshake. If an agent opened it, its program ends",
				zap.Error(refusal), zap.Stringer("peer", socket.RemoteAddr()), zap.Int("since_last_line", since))
		}
		_ = socket.Close()
		return
	}
	r.env.telemetry.Connections(1)
	r.begin(&connection{Conn: socket, slot: slot, closed: func() { r.env.telemetry.Connections(-1) }}, refusal)
}

// begin starts the goroutine of a connection, which owns the connection. A refusal that is not nil
// refuses it.
func (r *bytefrogReceiver) begin(conn *connection, refusal *limitError) {
	until := r.handshakes.begin(conn, time.Now().Add(r.env.config.Limits.HandshakeTimeout))
	r.env.receiver.Go(func() {
		defer r.env.connections.hold()()
		r.serve(conn, until, refusal)
	})
}

// handshakes are the connections whose first message has not arrived.
type handshakes struct {
	mu sync.Mutex
	// open has the deadline of each.
	open map[net.Conn]time.Time
	// latest is the latest deadline of all after a shutdown has begun; before, it is zero.
	latest time.Time
}

// begin sets the deadline of a connection, and returns it.
func (h *handshakes) begin(conn net.Conn, until time.Time) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.latest.IsZero() && h.latest.Before(until) {
		until = h.latest
	}
	if h.open == nil {
		h.open = map[net.Conn]time.Time{}
	}
	h.open[conn] = until
	_ = conn.SetReadDeadline(until)
	return until
}

func (h *handshakes) done(conn net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.open, conn)
}

func (h *handshakes) len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.open)
}

// shortenDeadlines makes a time the latest deadline of all connections, also of new ones.
func (h *handshakes) shortenDeadlines(latest time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.latest = latest
	for conn, until := range h.open {
		if latest.Before(until) {
			_ = conn.SetReadDeadline(latest)
		}
	}
}
