// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// atPort is a connection to a port.
type atPort struct {
	net.Conn
	port int
}

func (c atPort) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: c.port} }

func TestAPeerThatDoesNotServeViewersIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		port   int
		reply  string
		silent bool
		want   string
	}{
		"SSH":                             {22, "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", false, "got an SSH server: byte 8"},
		"HTTP":                            {80, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", false, "got an HTTP server: byte 8"},
		"HTTP, cut":                       {80, "HTTP/1.1", false, "got an HTTP server: byte 8 of the reply"},
		"TLS":                             {443, "\x15\x03\x01\x00\x02\x02\x46", false, "got a TLS server: byte 7"},
		"LTTng's control port":            {5342, "", false, "got port 5342, the relay daemon's port for control connections of session daemons: byte 0"},
		"LTTng's data port":               {5343, "", true, "got port 5343, the relay daemon's port for data connections of session daemons: byte 0"},
		"LTTng's port for agents":         {5345, "", false, "got port 5345, the session daemon's port for log agents: byte 0"},
		"silence":                         {5344, "", true, "got a peer that does not reply: byte 0"},
		"a relay daemon that is stopping": {5344, "", false, ""},
		"another version":                 {5344, "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x01", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			near, far := net.Pipe()
			peer := make(chan struct{})
			go func() {
				defer close(peer)
				request := make([]byte, 16+24)
				_, _ = io.ReadFull(far, request[:1])
				go func() { _, _ = io.Copy(io.Discard, far) }()
				_, _ = io.WriteString(far, c.reply)
				if !c.silent {
					_ = far.Close()
				}
			}()
			_, err := Connect(context.Background(), atPort{near, c.port}, ViewerOptions{Timeout: 50 * time.Millisecond})
			_ = near.Close()
			<-peer
			_ = far.Close()
			require.Error(t, err)
			if c.want == "" {
				assert.NotErrorAs(t, err, new(*WrongPeerError))
				return
			}
			assert.ErrorContains(t, err, "which is 5344 unless lttng-relayd has the option --live-port; "+c.want)
		})
	}
}
