// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/receiverkit/receivertestbed"
)

// agent is an agent whose steps a test decides.
type agent struct {
	t             testing.TB
	address       string
	version       uint8
	control       *peer
	configuration bytefrog.AgentConfiguration
	data          []*peer
}

// peer is the agent's end of a connection.
type peer struct {
	t       testing.TB
	conn    net.Conn
	version uint8
	buf     []byte
}

func dial(t testing.TB, address string) *peer {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return &peer{t: t, conn: conn, version: 1}
}

// bufferLittle makes the send buffer of the agent's end small.
func (p *peer) bufferLittle() {
	p.t.Helper()
	require.NoError(p.t, p.conn.(*net.TCPConn).SetWriteBuffer(64<<10))
}

func (p *peer) write(b []byte) {
	p.t.Helper()
	_, err := p.conn.Write(b)
	require.NoError(p.t, err)
}

func (p *peer) send(messages ...bytefrog.Message) {
	p.t.Helper()
	p.write(encode(messages...))
}

func encode(messages ...bytefrog.Message) []byte {
	var b []byte
	for _, m := range messages {
		b = m.AppendTo(b)
	}
	return b
}

// receive reads a message, or the end of the connection.
func (p *peer) receive() (bytefrog.Message, error) {
	for {
		m, n, err := bytefrog.DecodeCommand(p.buf, p.version, 1<<20)
		if err != nil || n > 0 {
			p.buf = p.buf[n:]
			return m, err
		}
		if err := p.conn.SetReadDeadline(time.Now().Add(receivertestbed.Patience)); err != nil {
			return nil, err
		}
		b := make([]byte, 4096)
		n, err = p.conn.Read(b)
		p.buf = append(p.buf, b[:n]...)
		if err != nil {
			return nil, err
		}
	}
}

func (p *peer) expect(want bytefrog.Message) {
	p.t.Helper()
	got, err := p.receive()
	require.NoError(p.t, err)
	require.Equal(p.t, want, got)
}

func (p *peer) expectCommand(of bytefrog.MessageType) {
	p.t.Helper()
	p.expect(bytefrog.Command{Of: of})
}

// expectError expects an error message, and returns its text.
func (p *peer) expectError() string {
	p.t.Helper()
	m, err := p.receive()
	require.NoError(p.t, err)
	require.IsType(p.t, bytefrog.ErrorMessage{}, m)
	return m.(bytefrog.ErrorMessage).Text
}

// expectToBeTurnedAway expects a start without classes, and then an error message.
func (p *peer) expectToBeTurnedAway(text string) {
	p.t.Helper()
	m, err := p.receive()
	require.NoError(p.t, err)
	c, err := bytefrog.ParseAgentConfiguration(m)
	require.NoError(p.t, err)
	assert.Equal(p.t, []string{""}, c.Exclusions)
	assert.Empty(p.t, c.Inclusions)
	assert.Zero(p.t, c.DataConnections)
	p.expectCommand(bytefrog.TypeStart)
	assert.Contains(p.t, p.expectError(), text)
}

// expectEnd expects the connection to be closed.
func (p *peer) expectEnd() {
	p.t.Helper()
	m, err := p.receive()
	require.Error(p.t, err, "got %v", m)
	assert.False(p.t, errors.Is(err, os.ErrDeadlineExceeded), "the connection was not closed")
}

func (p *peer) close() { _ = p.conn.Close() }

// expectToLinger expects that so many connections of the agent stay open after its run, and that the
// receiver discards their data. It closes them.
func (a *agent) expectToLinger(b *bed, connections int) {
	a.t.Helper()
	b.awaitRuns(0)
	b.Await("connections to linger", func() bool { return b.Counter("lingering") == int64(connections) })
	discarded, events := b.Counter("bytes_discarded"), b.events()
	late := append(calls(1_000_000, 1_000), 255)
	a.control.write(late)
	b.Await("the data to be discarded", func() bool {
		// Earlier data of the agent may still be discarded meanwhile.
		return b.Counter("bytes_discarded") >= discarded+int64(len(late))
	})
	assert.Equal(a.t, events, b.events())
	for _, p := range append(a.data, a.control) {
		p.close()
	}
	b.Await("no connection to linger", func() bool { return b.Counter("lingering") == 0 })
	assert.Zero(a.t, b.Counter("lingering_cut"))
}

// connect sends hello and waits for start.
func connect(b *bed, version uint8) *agent {
	b.T.Helper()
	a := &agent{t: b.T, address: b.address(), version: version, control: dial(b.T, b.address())}
	a.control.version = version
	a.control.send(bytefrog.Hello{Version: version})
	m, err := a.control.receive()
	require.NoError(b.T, err)
	a.configuration, err = bytefrog.ParseAgentConfiguration(m)
	require.NoError(b.T, err)
	a.control.expectCommand(bytefrog.TypeStart)
	return a
}

// join opens a data connection.
func (a *agent) join() *peer {
	a.t.Helper()
	p := dial(a.t, a.address)
	p.send(bytefrog.DataHello{Run: a.configuration.RunID})
	p.expect(bytefrog.DataHelloReply{})
	a.data = append(a.data, p)
	return p
}

// finish ends the run in the order of an agent: mode X, data connections, control connection.
func (a *agent) finish() {
	a.t.Helper()
	a.control.send(bytefrog.Heartbeat{Mode: bytefrog.ModeShuttingDown})
	for _, p := range a.data {
		p.close()
	}
	a.control.close()
}

// answerSuspend waits for suspend and answers with a data break.
func (a *agent) answerSuspend(next uint32) {
	a.t.Helper()
	a.control.expectCommand(bytefrog.TypeSuspend)
	a.control.send(bytefrog.DataBreak{Sequence: next})
}

// calls makes n calls of method 1 on thread 1, from a sequence number on: pairs of
// entry and exit.
func calls(first uint32, n int) []byte {
	var b []byte
	for i := range uint32(n) {
		b = bytefrog.AppendEvent(b, bytefrog.Event{Type: bytefrog.TypeMethodEntry, Sequence: first + 2*i, Method: 1, Thread: 1})
		b = bytefrog.AppendEvent(b, bytefrog.Event{Type: bytefrog.TypeMethodExit, Sequence: first + 2*i + 1, Method: 1, Thread: 1, Line: 7})
	}
	return b
}

// namesOne names method 1 and thread 1.
func namesOne() []byte {
	return encode(
		bytefrog.MapMethod{Method: 1, Signature: "demo/Shop.open;1;()V"},
		bytefrog.MapThreadName{Thread: 1, Name: "main"},
	)
}
