// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"errors"
	"net"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/slots"
)

const (
	// acceptPause is the first pause after a connection could not be accepted, as
	// when the process has too many open files; maxAcceptPause the longest.
	acceptPause    = 5 * time.Millisecond
	maxAcceptPause = time.Second
	// heardBeyond is how many connections beyond limits.max_connections are heard, so
	// that an agent can be turned away; others are closed at once, for which an agent
	// ends its program.
	heardBeyond = 64
)

// newSlots makes the slots of the receiver's connections.
func newSlots(env *environment) *slots.Slots {
	limits := &env.config.Limits
	return slots.New(slots.Options{
		Max: limits.MaxConnections, Setting: settingMaxConnections,
		PerAddress: limits.MaxConnectionsPerAddress, SettingPerAddress: settingPerAddress,
		Beyond: heardBeyond, Grace: env.timing.slotGrace,
		Closed: env.telemetry.Evicted, Logger: env.Logger,
	})
}

// accept takes connections until the listener is closed.
func (r *bytefrogReceiver) accept(listener net.Listener) {
	var pause time.Duration
	for {
		conn, err := listener.Accept()
		if err == nil {
			pause = 0
			r.receive(conn)
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return
		}
		pause = min(max(2*pause, acceptPause), maxAcceptPause)
		r.env.telemetry.AcceptError()
		r.env.Logger.Warn("A connection could not be accepted", zap.Error(err), zap.Duration("next_try_in", pause))
		if !r.sleep(pause) {
			return
		}
	}
}

// receive gives a connection a slot and a goroutine, in the first of these ways that
// works:
//
//  1. A slot is free, or a connection without a handshake loses its own.
//  2. Connections that linger make room.
//  3. The connection is only heard and refused.
//  4. One connection that lingers makes room for hearing it.
//
// Otherwise the receiver closes it.
func (r *bytefrogReceiver) receive(socket net.Conn) {
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
		if since, say := r.unheard.Say(r.env.Now()); say {
			r.env.Logger.Warn("A connection is closed unheard, and others for some time: an agent's program ends for it",
				zap.Error(refusal), zap.Stringer("peer", socket.RemoteAddr()), zap.Int("since_last_line", since))
		}
		_ = socket.Close()
		return
	}
	r.env.telemetry.Connections(1)
	r.begin(&connection{Conn: socket, slot: slot, closed: func() { r.env.telemetry.Connections(-1) }}, refusal)
}

// begin starts the goroutine of a connection, which is refused when there is a
// refusal. The connection is the goroutine's.
func (r *bytefrogReceiver) begin(conn *connection, refusal *limitError) {
	until := r.handshakes.begin(conn, time.Now().Add(r.env.config.Limits.HandshakeTimeout))
	r.env.run.Go(func() {
		defer r.env.connections.hold()()
		r.serve(conn, until, refusal)
	})
}

// sleep waits, and reports false when the receiver shuts down meanwhile.
func (r *bytefrogReceiver) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.env.run.Serving.Done():
		return false
	}
}

// handshakes are the connections of which it is not known yet what they are.
type handshakes struct {
	mu sync.Mutex
	// open says until when each has time.
	open map[net.Conn]time.Time
	// latest is when the time of all is over, if the shutdown has begun.
	latest time.Time
}

// begin sets the time that a connection has, and gives it.
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

// hurry leaves those that are open, and those to come, no more time than till then.
func (h *handshakes) hurry(latest time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.latest = latest
	for conn, until := range h.open {
		if latest.Before(until) {
			_ = conn.SetReadDeadline(latest)
		}
	}
}
