// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package logagent_test

import (
	"context"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
	"github.com/callbraid/callbraid/internal/lttng/sim/logagent"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheLoggersExistAfterRegistrationDone(t *testing.T) {
	for _, domain := range lttngagent.Domains() {
		d := listen(t)
		a, _ := d.start(logagent.Options{Domain: domain, PID: 4711, Loggers: []string{"a", "b"}, HandlerTimeout: time.Hour})
		l, r := d.registered()
		assert.Equal(t, lttngagent.NewRegistration(domain, 4711), r)
		assert.Empty(t, l.list(), "before the first handler is made")
		l.send(lttngagent.RegistrationDone{})
		await(t, "the handler is made", func() bool { return a.Stats().Handlers == 1 })
		await(t, "the loggers are there", func() bool { return len(a.Loggers()) == 2 })
		assert.Equal(t, []string{"a", "b"}, l.list())
		a.Attach("c")
		a.Detach("a")
		assert.Equal(t, []string{"b", "c"}, l.list())
		s := a.Stats()
		assert.Zero(t, s.HandlerTimeouts)
		assert.Positive(t, s.HandlerWait)
	}
}

func TestAProgramContinuesWithoutRegistrationDone(t *testing.T) {
	d := listen(t)
	a, _ := d.start(logagent.Options{Loggers: []string{"a"}, HandlerTimeout: time.Millisecond})
	l, _ := d.registered()
	await(t, "the loggers are there", func() bool { return len(a.Loggers()) == 1 })
	assert.Equal(t, []string{"a"}, l.list())
	assert.Equal(t, 1, a.Stats().HandlerTimeouts)
}

func TestJavaCountsEnablesByPattern(t *testing.T) {
	d := listen(t)
	a, _ := d.start(logagent.Options{})
	l, _ := d.registered()
	all, db := pattern(t, "*"), pattern(t, "com.example.db")
	assert.Equal(t, lttngagent.Success, l.code(lttngagent.Enable{Logger: all}))
	assert.Equal(t, lttngagent.Success, l.code(lttngagent.Enable{Logger: db}))
	assert.Equal(t, lttngagent.UnknownName, l.code(lttngagent.Disable{Logger: pattern(t, "com.example.*")}))
	assert.Equal(t, lttngagent.Success, l.code(lttngagent.EnableContext{Context: appContext(t)}))
	assert.Equal(t, map[string]int{"provider:name": 1}, a.Contexts())
	require.NoError(t, l.Close())

	l, _ = d.registered()
	assert.Equal(t, lttngagent.Success, l.code(lttngagent.Enable{Logger: all}))
	assert.Equal(t, map[string]int{"*": 2, "com.example.db": 1}, a.Enabled(), "the counts outlive the connection")
	assert.Equal(t, lttngagent.Success, l.code(lttngagent.Disable{Logger: all}))
	assert.Equal(t, lttngagent.Success, l.code(lttngagent.Disable{Logger: all}))
	assert.Equal(t, lttngagent.UnknownName, l.code(lttngagent.Disable{Logger: all}))
	assert.Equal(t, lttngagent.Success, l.code(lttngagent.DisableContext{Context: appContext(t)}))
	assert.Equal(t, lttngagent.UnknownName, l.code(lttngagent.DisableContext{Context: appContext(t)}))
	assert.Equal(t, map[string]int{"com.example.db": 1}, a.Enabled())
	assert.Empty(t, a.Contexts())

	await(t, "all is counted", func() bool { return a.Stats().Answered() == 10 })
	s := a.Stats()
	assert.Equal(t, 2, s.Connections)
	assert.Equal(t, map[lttngagent.CommandType]int{
		lttngagent.CommandEnable: 3, lttngagent.CommandDisable: 4,
		lttngagent.CommandEnableContext: 1, lttngagent.CommandDisableContext: 2,
	}, s.Commands)
}

func TestPythonHasOneCountAndAlwaysReportsSuccess(t *testing.T) {
	d := listen(t)
	a, _ := d.start(logagent.Options{Domain: lttngagent.Python})
	l, _ := d.registered()
	disable := lttngagent.Disable{Logger: pattern(t, "never.was")}
	assert.Equal(t, lttngagent.Success, l.code(disable))
	assert.Equal(t, lttngagent.Success, l.code(lttngagent.Enable{Logger: pattern(t, "a")}))
	assert.Equal(t, lttngagent.Success, l.code(lttngagent.Enable{Logger: pattern(t, "b")}))
	assert.Equal(t, map[string]int{"*": 2}, a.Enabled())
	assert.Equal(t, lttngagent.Success, l.code(disable))
	assert.Equal(t, lttngagent.Success, l.code(disable))
	assert.Empty(t, a.Enabled())
}

func TestAnAgentOfTheRFCDoesNotRegister(t *testing.T) {
	d := listen(t)
	a, _ := d.start(logagent.Options{Dialect: lttngagent.RFC, Loggers: []string{"a", "b"}, HandlerTimeout: time.Hour})
	l := d.accept()
	await(t, "the loggers are there", func() bool { return len(a.Loggers()) == 2 })
	assert.Equal(t, []string{"a", "b"}, l.list())
	assert.Equal(t, lttngagent.Success, l.code(lttngagent.Enable{Logger: pattern(t, "a")}))
	assert.Equal(t, lttngagent.UnknownName, l.code(lttngagent.Disable{Logger: pattern(t, "b")}))
	assert.Equal(t, map[string]int{"a": 1}, a.Enabled())
}

// deadly is an unknown command, which ends an agent.
var deadly = []byte{15: 0, 11: 99}

func TestAnUnknownCommandEndsTheThreadInJava(t *testing.T) {
	d := listen(t)
	a, stop := d.start(logagent.Options{})
	l, _ := d.registered()
	l.write(deadly)
	await(t, "the thread ends", func() bool { return a.Stats().Unanswered == 1 })
	l.send(lttngagent.List{})
	require.NoError(t, l.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
	_, err := l.from.ReadByte()
	require.ErrorContains(t, err, "i/o timeout", "open and mute")
	stop()
	require.NoError(t, l.SetReadDeadline(time.Now().Add(patience)))
	_, err = l.from.ReadByte()
	require.Error(t, err)
	assert.Equal(t, 1, a.Stats().Connections, "it never reconnected")
}

func TestPythonReconnectsAfterAnInvalidMessage(t *testing.T) {
	v2 := lttngagent.Agent{Dialect: lttngagent.V2, Domain: lttngagent.JUL} // supports contexts
	withContext, err := v2.AppendCommand(nil, lttngagent.EnableContext{Context: appContext(t)})
	require.NoError(t, err)
	for name, b := range map[string][]byte{
		"an unknown command": deadly,
		"a context":          withContext,
		"no payload":         {11: 2, 15: 0},
		"half a header":      deadly[:8],
		"half a payload":     {7: 16, 11: 3, 15: 0, 20: 0},
		"a header alone":     {7: 1, 11: 3, 15: 0},
		"an endless header":  {0: 1, 11: 1, 15: 0},
	} {
		d := listen(t)
		a, _ := d.start(logagent.Options{Domain: lttngagent.Python})
		l, _ := d.registered()
		l.write(b)
		if name == "a header alone" {
			require.NoError(t, l.Conn.(interface{ CloseWrite() error }).CloseWrite())
		}
		_, err := l.from.ReadByte()
		require.Error(t, err, name)
		l, _ = d.registered()
		assert.Empty(t, l.list(), name)
		assert.Equal(t, 2, a.Stats().Connections, name)
		assert.Equal(t, name != "a header alone", a.Stats().Unanswered == 1, name)
	}
}

func TestJavaAcceptsMessagesInPieces(t *testing.T) {
	d := listen(t)
	d.start(logagent.Options{})
	l, _ := d.registered()
	b, err := l.agent.AppendCommand(nil, lttngagent.Enable{Logger: pattern(t, "*")})
	require.NoError(t, err)
	for _, c := range b {
		l.write([]byte{c})
	}
	code, err := l.agent.ReadCode(l.from)
	require.NoError(t, err)
	assert.Equal(t, lttngagent.Success, code)
}

func TestAnAgentReconnectsToARestartedDaemon(t *testing.T) {
	path := filepath.Join(t.TempDir(), ".lttng", "agent.port")
	a, _ := start(t, logagent.Options{PortFile: path})
	d := listen(t)
	d.portFile(path)
	l, _ := d.registered()
	require.NoError(t, d.Close())
	require.NoError(t, l.Close())
	other := listen(t)
	other.portFile(path)
	other.registered()
	await(t, "both connections are counted", func() bool { return a.Stats().Connections == 2 })
}

func TestPythonReadsThePortFileOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.port")
	err := logagent.New(logagent.Options{Domain: lttngagent.Python, PortFile: path}).Run(context.Background())
	require.ErrorContains(t, err, "an agent in Python reads the address of its daemon only once: open "+path)
	d := listen(t)
	d.portFile(path)
	a, _ := start(t, logagent.Options{Domain: lttngagent.Python, PortFile: path})
	l, _ := d.registered()
	listen(t).portFile(path) // nothing listens there
	require.NoError(t, l.Close())
	d.registered()
	assert.Equal(t, 2, a.Stats().Connections)
}

func TestAReplyIsDelayed(t *testing.T) {
	d := listen(t)
	a, _ := d.start(logagent.Options{ReplyDelay: time.Hour})
	l, _ := d.registered()
	l.send(lttngagent.List{})
	require.NoError(t, l.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
	_, err := l.from.ReadByte()
	require.ErrorContains(t, err, "i/o timeout")
	assert.Zero(t, a.Stats().Answered())
}

func TestADisconnectionByTheDaemonIsNoError(t *testing.T) {
	d := listen(t)
	_, stop := d.start(logagent.Options{Retry: time.Hour})
	l, _ := d.registered()
	require.NoError(t, l.Close())
	stop()
	_, err := l.from.ReadByte()
	assert.NotErrorIs(t, err, io.ErrUnexpectedEOF)
}

func TestNamesAreAllDifferent(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range logagent.Names(10_000) {
		assert.False(t, seen[name], name)
		seen[name] = true
	}
	assert.Len(t, seen, 10_000)
}
