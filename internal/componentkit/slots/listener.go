// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package slots

import (
	"errors"
	"net"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/socket"
)

// listener closes connections without a handshake when there are too many open files.
type listener struct {
	net.Listener
	slots *Slots
}

// Listen returns a listener that accepts for slots. When a connection cannot be accepted
// because the process or the system has too many open files, it closes one without a
// handshake and tries again. The caller admits the connections.
func (s *Slots) Listen(from net.Listener) net.Listener { return &listener{from, s} }

func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err == nil || !isNoFiles(err) || !l.slots.Evict() {
			return conn, err
		}
	}
}

// SetDeadline sets the deadline of Accept. It returns an error if the wrapped listener has none.
func (l *listener) SetDeadline(t time.Time) error {
	below, ok := l.Listener.(interface{ SetDeadline(t time.Time) error })
	if !ok {
		return errors.ErrUnsupported
	}
	return below.SetDeadline(t)
}

func isNoFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// spareFiles is the number of open files of a collector beside the connections of a listener.
const spareFiles = 64

// WarnIfShort logs one warning if the process may have fewer open files than max connections need. It does nothing if
// the limit is unknown.
func WarnIfShort(logger *zap.Logger, setting string, max int) {
	if limit, known := socket.MaxOpenFiles(); known && limit < uint64(max)+spareFiles {
		logger.Warn("The process may have fewer open files than its connections need: raise the limit of open files (ulimit -n, LimitNOFILE), or lower the setting",
			zap.Uint64("open_files", limit), zap.String("setting", setting), zap.Int("value", max))
	}
}

// closeRaw closes the socket of a connection without the closing messages of TLS. With reset the system keeps no state
// of the connection.
func closeRaw(conn net.Conn, reset bool) {
	conn = socket.Below(conn)
	if tcp, ok := conn.(*net.TCPConn); ok && reset {
		_ = tcp.SetLinger(0) // without it, the close is a normal one
	}
	_ = conn.Close() // the connection is not used any more
}
