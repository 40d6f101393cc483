// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/connreader"
)

// playedCollector is a collector played by a test: it answers hello with some bytes, accepts data connections, and
// reads them.
type playedCollector struct {
	address string
	// greeted has one value for each hello. say are the bytes to send on the control connection then.
	greeted, stopped chan struct{}
	say              chan []byte
}

// play starts a played collector. It ends with the test.
func play(t *testing.T, answer []byte) *playedCollector {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &playedCollector{address: listener.Addr().String(), greeted: make(chan struct{}, 1000), stopped: make(chan struct{}), say: make(chan []byte)}
	var running sync.WaitGroup
	t.Cleanup(func() { close(p.stopped); _ = listener.Close(); running.Wait() })
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { p.serve(conn, answer) })
		}
	})
	return p
}

func (p *playedCollector) serve(conn net.Conn, answer []byte) {
	var writing sync.WaitGroup
	defer writing.Wait()
	defer conn.Close()
	ended := make(chan struct{})
	defer close(ended)
	writing.Go(func() {
		select {
		case <-p.stopped:
			_ = conn.Close()
		case <-ended:
		}
	})
	hello := make([]byte, 2)
	if _, err := io.ReadFull(conn, hello); err != nil {
		return
	}
	if hello[0] == byte(bytefrog.TypeDataHello) {
		_, _ = conn.Write(bytefrog.DataHelloReply{}.AppendTo(nil))
		_, _ = io.Copy(io.Discard, conn)
		return
	}
	p.greeted <- struct{}{}
	_, err := conn.Write(answer)
	for err == nil {
		select {
		case b := <-p.say:
			_, err = conn.Write(b)
		case <-p.stopped:
			return
		}
	}
}

// starting returns the messages that start an agent, with other commands before start.
func starting(t *testing.T, connections int32, orders ...bytefrog.MessageType) []byte {
	b := configuring(t, connections)
	for _, of := range append(orders, bytefrog.TypeStart) {
		b = bytefrog.Command{Of: of}.AppendTo(b)
	}
	return b
}

// byHand is an agent played by a test.
type byHand struct {
	t             *testing.T
	address       string
	version       uint8
	control       net.Conn
	in            *connreader.Reader
	configuration bytefrog.AgentConfiguration
}

// byHand sends hello to the guard, and waits for start.
func (b *bed) byHand(t *testing.T) *byHand { return speak(t, b.address, 1) }

// speak sends hello in a version of the protocol, and waits for start.
func speak(t *testing.T, address string, version uint8) *byHand {
	control, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = control.Close() })
	a := &byHand{t: t, address: address, version: version, control: control, in: newReader(control, maxConfiguration)}
	a.say(bytefrog.Hello{Version: version})
	a.configuration, err = bytefrog.ParseAgentConfiguration(a.hear())
	require.NoError(t, err)
	require.Equal(t, bytefrog.TypeStart, a.hear().Type())
	return a
}

func (a *byHand) say(m bytefrog.Message) {
	_, err := a.control.Write(m.AppendTo(nil))
	require.NoError(a.t, err)
}

// hear returns the next message.
func (a *byHand) hear() bytefrog.Message {
	m, _, err := a.in.Next(fromCollector(a.version), time.Now().Add(patience))
	require.NoError(a.t, err)
	return m
}

// data opens a data connection.
func (a *byHand) data() *net.TCPConn {
	conn, err := net.Dial("tcp", a.address)
	require.NoError(a.t, err)
	a.t.Cleanup(func() { _ = conn.Close() })
	_, err = conn.Write(bytefrog.DataHello{Run: a.configuration.RunID}.AppendTo(nil))
	require.NoError(a.t, err)
	m, _, err := newReader(conn, controlBytes).Next(fromCollector(1), time.Now().Add(patience))
	require.NoError(a.t, err)
	require.Equal(a.t, bytefrog.TypeDataHelloReply, m.Type())
	return conn.(*net.TCPConn)
}
