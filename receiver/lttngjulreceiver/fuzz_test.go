// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"bufio"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

// FuzzAgentConnection sends any data as an agent, and closes. The agent loses at most its own connection, and no memory
// stays in use.
func FuzzAgentConnection(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("..", "..", "testdata", "lttng", "agent", "*.a2s.bin"))
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, file := range append(files, filepath.Join("..", "..", "testdata", "lttng", "agent", "real2.conn1.c2s.bin")) {
		b, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(b, false)
		f.Add(b[min(len(b), lttngagent.RegistrationSize):], true)
	}
	f.Add(lttngagent.ListReply{Code: lttngagent.Success, Loggers: []string{"a", "", "ü"}}.AppendTo(nil, lttngagent.RFC), true)
	rules := func(protocol Protocol) func(*Config) {
		return func(c *Config) {
			c.Protocol = protocol
			c.Enable = []EnableRule{{Domain: "jul", Logger: "com.example.*"}}
			c.ListInterval = 10 * time.Millisecond
			c.Limits.MaxLoggers, c.Limits.MaxListBytes, c.Limits.MaxInventoryBytes = 100, 64*kib, mib
			c.Limits.MaxQueuedLogs = 1000
		}
	}
	v2, rfc := newBed(f, rules(Protocol2)), newBed(f, rules(ProtocolRFC))
	f.Fuzz(func(t *testing.T, sent []byte, isRFC bool) {
		b := v2
		if isRFC {
			b = rfc
		}
		ours, theirs := net.Pipe()
		b.receiver.registrar.admit(ours)
		if isRFC {
			// Data before the first command is refused.
			_, err := lttngagent.RFC.ReadRequest(bufio.NewReader(theirs))
			require.NoError(t, err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			// This ends when the receiver or the agent closes.
			_, _ = io.Copy(io.Discard, theirs)
		}()
		_, _ = theirs.Write(sent)
		_ = theirs.Close()
		<-ended
		open := func() bool {
			b.receiver.registrar.registry.mu.Lock()
			defer b.receiver.registrar.registry.mu.Unlock()
			return len(b.receiver.registrar.registry.sessions) > 0
		}
		for until := time.Now().Add(patience); open(); {
			require.True(t, time.Now().Before(until), "the connection is still open")
			time.Sleep(10 * time.Microsecond)
		}
		assert.Zero(t, b.receiver.registrar.sessions.NameBytes())
	})
}
