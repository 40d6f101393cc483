// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package logagent_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
	"github.com/callbraid/callbraid/internal/lttng/sim/logagent"
	"github.com/callbraid/callbraid/internal/testkit"
)

// patience is the time limit for expected events.
const patience = time.Minute

// daemon is the daemon's side for an agent, controlled by a test.
type daemon struct {
	net.Listener
	t *testing.T
}

func listen(t *testing.T) daemon {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() }) // may be closed already
	return daemon{l, t}
}

// start runs an agent of this daemon until the end of the test, with a short time before it reconnects. stop ends it
// earlier.
func (d daemon) start(o logagent.Options) (a *logagent.Agent, stop func()) {
	d.t.Helper()
	o.Address = d.Addr().String()
	return start(d.t, o)
}

func start(t *testing.T, o logagent.Options) (a *logagent.Agent, stop func()) {
	t.Helper()
	if o.Retry == 0 {
		o.Retry = time.Millisecond
	}
	o.Log = t.Logf
	a = logagent.New(o)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		select {
		case err := <-ended:
			assert.NoError(t, err)
		case <-time.After(patience):
			t.Error("the agent does not end")
		}
	}
	t.Cleanup(stop)
	return a, stop
}

// link is the daemon's end of a connection.
type link struct {
	net.Conn
	t     *testing.T
	from  *bufio.Reader
	agent lttngagent.Agent
}

// accept accepts the next connection.
func (d daemon) accept() *link {
	d.t.Helper()
	require.NoError(d.t, d.Listener.(*net.TCPListener).SetDeadline(time.Now().Add(patience)))
	conn, err := d.Listener.Accept()
	require.NoError(d.t, err)
	d.t.Cleanup(func() { _ = conn.Close() }) // may be closed already
	require.NoError(d.t, conn.SetDeadline(time.Now().Add(patience)))
	return &link{conn, d.t, bufio.NewReader(conn), lttngagent.Agent{Dialect: lttngagent.RFC, Domain: lttngagent.JUL}}
}

// registered accepts the next connection and reads its registration.
func (d daemon) registered() (*link, lttngagent.Registration) {
	d.t.Helper()
	l := d.accept()
	b := make([]byte, lttngagent.RegistrationSize)
	_, err := io.ReadFull(l.from, b)
	require.NoError(d.t, err)
	r, err := lttngagent.ParseRegistration(b)
	require.NoError(d.t, err)
	l.agent = r.Agent()
	return l, r
}

func (l *link) send(c lttngagent.Command) {
	l.t.Helper()
	b, err := l.agent.AppendCommand(nil, c)
	require.NoError(l.t, err)
	l.write(b)
}

func (l *link) write(b []byte) {
	l.t.Helper()
	_, err := l.Write(b)
	require.NoError(l.t, err)
}

func (l *link) code(c lttngagent.Command) lttngagent.Code {
	l.t.Helper()
	l.send(c)
	code, err := l.agent.ReadCode(l.from)
	require.NoError(l.t, err)
	return code
}

func (l *link) list() []string {
	l.t.Helper()
	reply, err := l.tryList()
	require.NoError(l.t, err)
	require.Equal(l.t, lttngagent.Success, reply.Code)
	return reply.Loggers
}

func (l *link) tryList() (lttngagent.ListReply, error) {
	l.t.Helper()
	l.send(lttngagent.List{})
	return l.agent.ReadList(l.from, lttngagent.Limits{})
}

// await waits for a condition.
func await(t *testing.T, what string, met func() bool) {
	t.Helper()
	require.True(t, testkit.Happens(met), what)
}

// portFile writes a file with the daemon's port.
func (d daemon) portFile(path string) {
	d.t.Helper()
	port := d.Addr().(*net.TCPAddr).Port
	require.NoError(d.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(d.t, os.WriteFile(path, fmt.Appendln(nil, port), 0o644))
}

func pattern(t *testing.T, text string) lttngagent.Pattern {
	t.Helper()
	p, err := lttngagent.ParsePattern(text)
	require.NoError(t, err)
	return p
}

func appContext(t *testing.T) lttngagent.Context {
	t.Helper()
	c, err := lttngagent.NewContext("provider", "name")
	require.NoError(t, err)
	return c
}

func levels(t *testing.T, kind lttngagent.LevelType, level lttngagent.Level) lttngagent.Levels {
	t.Helper()
	l, err := lttngagent.NewLevels(kind, level)
	require.NoError(t, err)
	return l
}

func filter(t *testing.T, text string) lttngagent.Filter {
	t.Helper()
	f, err := lttngagent.ParseFilter(text)
	require.NoError(t, err)
	return f
}
