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

// handshakeBytes is the buffer of a new connection. It is small, so that a connection that is not an
// agent's costs little.
const handshakeBytes = 256

// controlBytes is the size of the buffer of a control connection.
const controlBytes = 4 << 10

// serve is the goroutine of a connection. It reads the first message, until a deadline, and then reads
// the connection to its end. A refusal that is not nil refuses the connection.
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

// readFirst reads the first message, and calls sent when a part of it has arrived. The error
// is a *connreader.BadData, or the connection's. Overdue is not needed: both it and until allow
// handshake_timeout, until begins earlier, and Read reports its end as an error.
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

// refuseBadFirst refuses a connection whose first message could not be read. A connection that was
// closed without data, as health checks do, is no error.
func (r *bytefrogReceiver) refuseBadFirst(in *connreader.Reader, err error) {
	var bad *connreader.BadData
	if !errors.As(err, &bad) || r.env.receiver.IsStopping() {
		_ = in.Conn().Close()
		return
	}
	r.env.telemetry.BadData(telemetry.ConnectionNew)
	r.env.Logger.Warn("A connection is closed: its first message is not an agent's", zap.Error(bad))
	r.refuse(in.Conn(), refusedBadData, "expected "+bad.Expected+", got "+bad.Got)
}

// greet answers hello: the agent is started, or refused.
func (r *bytefrogReceiver) greet(in *connreader.Reader, slot *slots.Slot, m bytefrog.Hello, refusal *limitError) {
	if m.Version < bytefrog.MinVersion || m.Version > bytefrog.MaxVersion {
		r.refuseVersion(in, fmt.Sprintf("protocol version %d", m.Version))
		return
	}
	if !slot.Establish() {
		_ = in.Conn().Close() // it was closed to make room
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

// isProjectHello reports whether a connection begins with a message of version 4.
func isProjectHello(b []byte) bool {
	return len(b) > 0 && bytefrog.MessageType(b[0]) == bytefrog.TypeProjectHello
}

// refuseVersion refuses an agent with another protocol version.
func (r *bytefrogReceiver) refuseVersion(in *connreader.Reader, spoken string) {
	text := fmt.Sprintf("%s is not supported: this receiver speaks versions %d and %d", spoken, bytefrog.MinVersion, bytefrog.MaxVersion)
	r.env.Logger.Warn("An agent is refused: "+text, zap.Stringer("peer", in.Conn().RemoteAddr()))
	r.refuse(in.Conn(), refusedVersion, text)
}

// join answers data hello: the connection joins its run, or is refused. Its agent was started, so the
// program runs on after an error message.
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

// receiveBuffer is the size of the operating system's buffer for a data connection, in bytes. The system
// may use twice as much.
//
// Without it the system uses up to net.ipv4.tcp_rmem, many MiB, for a connection that is read fast. When
// that buffer is full, the system announces room only after each sixteenth of it. So a collector that
// reads all the time would seem to a guard to stand still for a tenth of a second again and again. And
// the buffered data would be neither bounded nor counted.
const receiveBuffer = 512 << 10

// boundReceiveBuffer bounds the system's buffer for a data connection.
func boundReceiveBuffer(conn net.Conn) {
	if tcp, ok := socket.Below(conn).(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(receiveBuffer) // an error does no harm: only the flow is less even
	}
}
