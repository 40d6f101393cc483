// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/connreader"
	"github.com/callbraid/callbraid/internal/componentkit/slots"
	"github.com/callbraid/callbraid/internal/componentkit/socket"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/session"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/telemetry"
)

// handshakeBytes is how much of a new connection is read at once: less than what
// an agent could send, so that a connection that is none costs little.
const handshakeBytes = 256

// controlBytes and dataBytes are the sizes of the buffers of control connections and data connections.
const (
	controlBytes = 4 << 10
	dataBytes    = 64 << 10
)

// serve is what a connection's goroutine does: it finds out what the connection
// is, for which it has the time until, and is its reader from then on, or refuses it
// when there is a refusal.
func (r *bytefrogReceiver) serve(conn *connection, until time.Time, refusal *limitError) {
	limits := &r.env.config.Limits
	in := connreader.New(conn, connreader.Settings{
		Buffer: handshakeBytes, MaxMessage: bytefrog.MaxMessageSize(limits.MaxMessageSize),
		MessageTimeout: limits.HandshakeTimeout, Deadline: until,
	})
	first, err := r.readFirst(in, until, conn.slot.Sent)
	r.handshakes.done(conn)
	if err != nil && isProjectHello(in.Bytes()) {
		r.refuseVersion(in, "project hello (16) of protocol version 4")
		return
	}
	if err != nil {
		r.refuseBadFirst(in, err)
		return
	}
	in.SetMessageTimeout(limits.MessageTimeout)
	switch m := first.(type) {
	case bytefrog.Hello:
		r.greet(in, conn.slot, m, refusal)
	case bytefrog.DataHello:
		r.join(in, conn.slot, m, refusal)
	}
}

// readFirst reads the first message, and calls sent when it has a part of it. The error
// is a *connreader.BadData, or the connection's.
func (r *bytefrogReceiver) readFirst(in *connreader.Reader, until time.Time, sent func()) (bytefrog.Message, error) {
	for {
		m, n, err := bytefrog.DecodeFirst(in.Bytes(), r.env.config.Limits.MaxMessageSize)
		if err != nil {
			return nil, in.BadData(err)
		}
		if n > 0 {
			in.Consume(n)
			return m, nil
		}
		if len(in.Bytes()) > 0 {
			sent()
		}
		_, err = in.Read(time.Now(), until)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, in.BadData(&bytefrog.ProtocolError{
				Offset:   len(in.Bytes()),
				Expected: fmt.Sprintf("hello (0) or data hello (30) within %v", r.env.config.Limits.HandshakeTimeout),
				Got:      "nothing more",
			})
		}
		if err != nil {
			return nil, err
		}
	}
}

// refuseBadFirst refuses a connection whose first message could not be read. One
// that was opened and closed again, as health checks do, is no error.
func (r *bytefrogReceiver) refuseBadFirst(in *connreader.Reader, err error) {
	var bad *connreader.BadData
	if !errors.As(err, &bad) || r.env.run.IsStopping() {
		_ = in.Conn().Close()
		return
	}
	r.env.telemetry.BadData(telemetry.ConnectionNew)
	r.env.Logger.Warn("A connection is closed: it doesn't begin as an agent's does", zap.Error(bad))
	r.refuse(in.Conn(), refusedBadData, "expected "+bad.Expected+", got "+bad.Got)
}

// greet answers hello: the agent is started, or turned away.
func (r *bytefrogReceiver) greet(in *connreader.Reader, slot *slots.Slot, m bytefrog.Hello, refusal *limitError) {
	if m.Version < bytefrog.MinVersion || m.Version > bytefrog.MaxVersion {
		r.refuseVersion(in, fmt.Sprintf("protocol version %d", m.Version))
		return
	}
	if !slot.Establish() {
		_ = in.Conn().Close() // it has lost its slot
		return
	}
	in.Resize(controlBytes)
	if refusal != nil {
		r.turnAway(in, m.Version, refusal)
		return
	}
	opened, err := r.openSession(m.Version, in)
	if err != nil {
		r.turnAway(in, m.Version, err)
		return
	}
	r.serveAgent(opened, m.Version, in)
}

// serveAgent serves the session of an agent. It turns the agent away if the session ends before the
// agent's start.
func (r *bytefrogReceiver) serveAgent(s *session.Session, version uint8, in *connreader.Reader) {
	if err := s.Serve(); err != nil {
		r.turnAway(in, version, err)
	}
}

// isProjectHello reports whether a connection begins as those of version 4 may.
func isProjectHello(b []byte) bool {
	return len(b) > 0 && bytefrog.MessageType(b[0]) == bytefrog.TypeProjectHello
}

// refuseVersion refuses an agent that speaks what this receiver does not.
func (r *bytefrogReceiver) refuseVersion(in *connreader.Reader, spoken string) {
	text := fmt.Sprintf("%s is not supported: this receiver speaks versions %d and %d", spoken, bytefrog.MinVersion, bytefrog.MaxVersion)
	r.env.Logger.Warn("An agent is refused: "+text, zap.Stringer("peer", in.Conn().RemoteAddr()))
	r.refuse(in.Conn(), refusedVersion, text)
}

// join answers data hello: the connection joins its run or is refused. An agent that
// is told error here was started, so its program runs on.
func (r *bytefrogReceiver) join(in *connreader.Reader, slot *slots.Slot, m bytefrog.DataHello, refusal *limitError) {
	if refusal != nil {
		r.env.Logger.Warn("A data connection is refused", zap.Error(refusal), zap.Stringer("peer", in.Conn().RemoteAddr()))
		r.refuse(in.Conn(), reasonOf(refusal), refusal.Error())
		return
	}
	joined := r.env.registry.lookup(m.Run)
	if joined == nil {
		text := fmt.Sprintf("run %d is unknown", m.Run)
		r.env.Logger.Warn("A data connection is refused: "+text, zap.Stringer("peer", in.Conn().RemoteAddr()))
		r.refuse(in.Conn(), refusedUnknownRun, text)
		return
	}
	boundReceiveBuffer(in.Conn())
	if err := joined.Join(in, slot.Establish); err != nil {
		r.env.Logger.Warn("A data connection is refused", zap.Error(err), zap.Uint8("run", m.Run), zap.String("peer", joined.State().Peer), zap.Stringer("data_peer", in.Conn().RemoteAddr()))
		r.refuse(in.Conn(), reasonOf(err), err.Error())
	}
}

// receiveBuffer is what the system is asked to hold of a data connection that was not read yet,
// in bytes; it may hold twice as much.
//
// By itself the system takes up to net.ipv4.tcp_rmem, many MiB, for a connection that is read
// fast. When that is full it says only after each sixteenth of it that there is room again. So a
// collector that reads all the time would seem to a guard to stand still for a tenth of a second
// again and again; and what waits in the system is neither bounded nor counted.
const receiveBuffer = 512 << 10

// boundReceiveBuffer bounds what the system holds of a data connection.
func boundReceiveBuffer(conn net.Conn) {
	if tcp, ok := socket.Below(conn).(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(receiveBuffer) // without it all works, if less evenly
	}
}
