// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package slots

import (
	"context"
	"errors"
	"net"
	"time"
)

const (
	// acceptPause is the first pause after a connection could not be accepted, such as with too many open files.
	// maxAcceptPause is the longest one.
	acceptPause    = 5 * time.Millisecond
	maxAcceptPause = time.Second
)

// Accept calls admit with each connection, until the listener is closed. If a connection cannot be accepted, it calls
// failed and tries again after a pause, until ctx ends.
func Accept(ctx context.Context, listener net.Listener, admit func(net.Conn), failed func(err error, pause time.Duration)) {
	var pause time.Duration
	for {
		conn, err := listener.Accept()
		if err == nil {
			pause = 0
			admit(conn)
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return
		}
		pause = min(max(2*pause, acceptPause), maxAcceptPause)
		failed(err, pause)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}
