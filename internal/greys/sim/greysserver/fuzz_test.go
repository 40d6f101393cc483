// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysserver

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/greys/gp"
)

// FuzzServer sends any bytes to a server and disconnects. The first byte chooses the protocol. The server must have
// ended everything afterwards.
func FuzzServer(f *testing.F) {
	for _, line := range []string{
		"\n", "version\nreset\n", "session -s false\n", "monitor -c 1 * *\n\x04version\n", "trace -n 2 * *\n", "stack -E .* .*\n", "tt -t -n 3 * *\n",
		"tt -l\n", "tt -i 1001\n", "sc -d -f *Service1\n", "sm -d * *\n", "monitor -E ( *\n", "bogus \"x\n", "\x18\r\n",
	} {
		f.Add([]byte(line))
	}
	for requestType := range gp.RequestType(12) {
		f.Add(gp.AppendRequest(nil, gp.Request{
			Version: gp.DefaultVersion, SendID: int32(requestType), Type: requestType,
			Data: []byte(`{"class-pattern":"*","method-pattern":"*","cycle":"1","limit":"2","index":"1001"}`),
		}))
	}
	server, err := New(Options{Codes: gp.UsualCodes(), Speed: 1e6, EndDelay: 1, SessionTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second})
	require.NoError(f, err)
	over, end := context.WithCancel(context.Background())
	f.Cleanup(end)
	l := server.begin(over)
	p := newProgram(l.options)
	f.Fuzz(func(t *testing.T, data []byte) {
		client, conn := net.Pipe()
		attended := make(chan struct{})
		go func() {
			defer close(attended)
			server.serve(l, conn)
		}()
		read := make(chan struct{})
		go func() {
			defer close(read)
			_, _ = io.Copy(io.Discard, client)
		}()
		_, _ = client.Write(data) // the server may close the connection before the end
		for range 3 {
			c, of := p.next()
			l.happened(c, thread(of), time.Now())
		}
		require.NoError(t, client.Close())
		<-attended
		<-read
		l.mu.Lock()
		defer l.mu.Unlock()
		require.Empty(t, l.watches)
		require.Empty(t, l.sessions)
	})
}
