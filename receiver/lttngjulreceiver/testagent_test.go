// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

// testAgent is an agent played by a test.
type testAgent struct {
	t    testing.TB
	conn net.Conn
	in   *bufio.Reader
	// dialect is its version of the protocol.
	dialect lttngagent.Dialect
}

// connect connects and sends nothing.
func (b *bed) connect() *testAgent {
	b.T.Helper()
	conn, err := net.DialTimeout("tcp", b.address(), patience)
	require.NoError(b.T, err)
	b.T.Cleanup(func() { _ = conn.Close() })
	require.NoError(b.T, conn.SetDeadline(time.Now().Add(patience)))
	return &testAgent{t: b.T, conn: conn, in: bufio.NewReader(conn)}
}

// register connects and registers as an agent of this process.
func (b *bed) register(domain lttngagent.Domain) *testAgent {
	b.T.Helper()
	a := b.connect()
	a.send(lttngagent.NewRegistration(domain, uint32(os.Getpid())).AppendTo(nil))
	return a
}

func (a *testAgent) send(b []byte) {
	a.t.Helper()
	_, err := a.conn.Write(b)
	require.NoError(a.t, err)
}

// next reads the next command.
func (a *testAgent) next() lttngagent.Command {
	a.t.Helper()
	request, err := a.dialect.ReadRequest(a.in)
	require.NoError(a.t, err)
	assert.Zero(a.t, request.Version)
	command, err := request.Command(a.dialect)
	require.NoError(a.t, err)
	return command
}

// expect reads commands, and answers each with Success, lists with loggers.
func (a *testAgent) expect(commands ...lttngagent.Command) {
	a.t.Helper()
	for _, want := range commands {
		require.Equal(a.t, want, a.next())
		switch want.(type) {
		case lttngagent.RegistrationDone:
		case lttngagent.List:
			a.list()
		default:
			a.answer(lttngagent.Success)
		}
	}
}

func (a *testAgent) answer(code lttngagent.Code) {
	a.t.Helper()
	a.send(code.AppendTo(nil))
}

// list answers a list.
func (a *testAgent) list(loggers ...string) {
	a.t.Helper()
	a.send(lttngagent.ListReply{Code: lttngagent.Success, Loggers: loggers}.AppendTo(nil, a.dialect))
}

// serve answers commands with Success and lists with loggers, until the connection ends. It returns the commands except
// lists.
func (a *testAgent) serve(loggers ...string) (commands []lttngagent.Command) {
	for {
		request, err := a.dialect.ReadRequest(a.in)
		if err != nil {
			return commands
		}
		command, err := request.Command(a.dialect)
		if !assert.NoError(a.t, err) {
			return commands
		}
		reply := lttngagent.Success.AppendTo(nil)
		switch command.(type) {
		case lttngagent.List:
			reply = lttngagent.ListReply{Code: lttngagent.Success, Loggers: loggers}.AppendTo(nil, a.dialect)
		case lttngagent.RegistrationDone:
			commands, reply = append(commands, command), nil
		default:
			commands = append(commands, command)
		}
		if _, err := a.conn.Write(reply); err != nil {
			return commands
		}
	}
}

// awaitClosed waits until the receiver has closed the connection.
func (a *testAgent) awaitClosed() {
	a.t.Helper()
	_, err := io.Copy(io.Discard, a.in)
	assert.False(a.t, errors.Is(err, os.ErrDeadlineExceeded), "the connection is open")
}
