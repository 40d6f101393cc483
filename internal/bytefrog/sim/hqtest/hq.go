// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package hqtest is a scripted headquarters of the Bytefrog protocol for tests: it
// accepts one agent, executes the calls of the test, well-behaved or not, and records
// the agent's data.
package hqtest

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

// patience limits every wait of a test.
const patience = 20 * time.Second

// readBuffer limits the data on their way to the HQ, in bytes.
const readBuffer = 64 << 10

// HQ is one headquarters. Its methods fail the test if the agent does not act as expected.
type HQ struct {
	t        testing.TB
	listener net.Listener
	accepted chan net.Conn

	// Control is the control connection, after Accept.
	Control net.Conn
	// Data are the data connections, after AcceptData.
	Data []net.Conn

	mu      sync.Mutex
	changed *sync.Cond
	control []bytefrog.Message
	unread  []byte
	data    [][]byte
	counted []int // bytes of data whose events are counted in events
	events  int   // call events and markers in data
	open    int   // connections that are open
	size    int   // bytes of data
	stopAt  int   // bytes of data after which reading stops; -1 means never
	readers sync.WaitGroup
}

// New listens on a free port. The end of the test closes the HQ.
func New(t testing.TB) *HQ {
	t.Helper()
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	return NewAt(t, listener)
}

// NewAt accepts the connections of a listener. The end of the test closes the HQ.
func NewAt(t testing.TB, listener net.Listener) *HQ {
	t.Helper()
	hq := &HQ{t: t, listener: listener, accepted: make(chan net.Conn, 64), stopAt: -1}
	hq.changed = sync.NewCond(&hq.mu)
	hq.readers.Add(1)
	go hq.accept()
	t.Cleanup(hq.Close)
	return hq
}

// Endpoint returns the address of the HQ.
func (hq *HQ) Endpoint() string { return hq.listener.Addr().String() }

func (hq *HQ) accept() {
	defer hq.readers.Done()
	for {
		conn, err := hq.listener.Accept()
		if err != nil {
			close(hq.accepted)
			return
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			tcp.SetReadBuffer(readBuffer) // a request; the system may use a larger buffer
		}
		hq.accepted <- conn
	}
}

// Close closes all connections immediately and waits for its goroutines.
func (hq *HQ) Close() {
	hq.listener.Close()
	hq.CloseControl()
	hq.CloseData()
	hq.StopReading(false)
	for conn := range hq.accepted {
		conn.Close()
	}
	hq.readers.Wait()
}

// Accept accepts the control connection and reads its hello.
func (hq *HQ) Accept() bytefrog.Hello {
	hq.t.Helper()
	hq.Control = hq.nextConn()
	first := make([]byte, 2)
	if _, err := io.ReadFull(hq.Control, first); err != nil {
		hq.t.Fatalf("read hello: %v", err)
	}
	m, _, err := bytefrog.DecodeFirst(first, bytefrog.MaxString)
	hello, ok := m.(bytefrog.Hello)
	if !ok {
		hq.t.Fatalf("expected hello, got %v (%v)", m, err)
	}
	hq.mu.Lock()
	hq.open++
	hq.mu.Unlock()
	hq.readers.Add(1)
	go hq.readControl()
	return hello
}

func (hq *HQ) nextConn() net.Conn {
	hq.t.Helper()
	select {
	case conn, ok := <-hq.accepted:
		if ok {
			return conn
		}
	case <-time.After(patience):
	}
	hq.t.Fatal("expected a connection of the agent, got none")
	return nil
}

// Configure sends a configuration in the format of the protocol version.
func (hq *HQ) Configure(version uint8, c bytefrog.AgentConfiguration) {
	hq.t.Helper()
	m, err := c.Message(version)
	if err != nil {
		hq.t.Fatalf("configuration: %v", err)
	}
	hq.Send(m)
}

// Send sends messages on the control connection, in one write.
func (hq *HQ) Send(messages ...bytefrog.Message) {
	var b []byte
	for _, m := range messages {
		b = m.AppendTo(b)
	}
	hq.Control.Write(b) // the loss of the agent shows elsewhere
}

// Order sends a control message that consists only of its type.
func (hq *HQ) Order(of bytefrog.MessageType) { hq.Send(bytefrog.Command{Of: of}) }

// AcceptData accepts n data connections, answers their hellos, and continues to read.
func (hq *HQ) AcceptData(n int) {
	hq.t.Helper()
	for range n {
		hq.AcceptDataHello()
		hq.Reply(bytefrog.DataHelloReply{})
	}
}

// AcceptDataHello accepts one data connection and reads its hello.
func (hq *HQ) AcceptDataHello() bytefrog.DataHello {
	hq.t.Helper()
	conn := hq.nextConn()
	first := make([]byte, 2)
	if _, err := io.ReadFull(conn, first); err != nil {
		hq.t.Fatalf("read data hello: %v", err)
	}
	m, _, err := bytefrog.DecodeFirst(first, bytefrog.MaxString)
	hello, ok := m.(bytefrog.DataHello)
	if !ok {
		hq.t.Fatalf("expected data hello, got %v (%v)", m, err)
	}
	hq.Data = append(hq.Data, conn)
	hq.mu.Lock()
	hq.open++
	hq.data = append(hq.data, nil)
	hq.counted = append(hq.counted, 0)
	hq.mu.Unlock()
	hq.readers.Add(1)
	go hq.readData(len(hq.Data)-1, conn)
	return hello
}

// Reply answers the last data hello.
func (hq *HQ) Reply(m bytefrog.Message) { hq.Data[len(hq.Data)-1].Write(m.AppendTo(nil)) }

// Begin accepts an agent of version 1, configures it, starts it and accepts its data connections.
func (hq *HQ) Begin(c bytefrog.AgentConfiguration) {
	hq.t.Helper()
	hello := hq.Accept()
	hq.Configure(hello.Version, c)
	hq.Order(bytefrog.TypeStart)
	hq.AcceptData(int(c.DataConnections))
}

// CloseData closes the data connections.
func (hq *HQ) CloseData() {
	for _, conn := range hq.Data {
		conn.Close()
	}
}

// CloseControl closes the control connection.
func (hq *HQ) CloseControl() {
	if hq.Control != nil {
		hq.Control.Close()
	}
}

// StopReading stops or resumes reading data connections, like a slow HQ. A read in progress finishes first.
func (hq *HQ) StopReading(stop bool) {
	hq.mu.Lock()
	defer hq.mu.Unlock()
	hq.stopAt = -1
	if stop {
		hq.stopAt = 0
	}
	hq.changed.Broadcast()
}

// ReadMore reads at least n more bytes of data, then stops reading. It returns after they have arrived.
func (hq *HQ) ReadMore(n int) {
	hq.t.Helper()
	hq.mu.Lock()
	n += hq.size
	hq.stopAt = n
	hq.changed.Broadcast()
	hq.mu.Unlock()
	hq.WaitBytes(n)
}

func (hq *HQ) readControl() {
	defer hq.readers.Done()
	chunk := make([]byte, 4096)
	for {
		n, err := hq.Control.Read(chunk)
		hq.mu.Lock()
		hq.unread = append(hq.unread, chunk[:n]...)
		for {
			m, size, decodeErr := bytefrog.DecodeControl(hq.unread, bytefrog.MaxString)
			if decodeErr != nil {
				hq.t.Errorf("control connection: %v", decodeErr)
			}
			if size == 0 {
				break
			}
			hq.unread = hq.unread[size:]
			hq.control = append(hq.control, m)
		}
		if err != nil {
			hq.open--
		}
		hq.changed.Broadcast()
		hq.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (hq *HQ) readData(i int, conn net.Conn) {
	defer hq.readers.Done()
	chunk := make([]byte, 64<<10)
	for {
		hq.mu.Lock()
		for hq.stopAt >= 0 && hq.size >= hq.stopAt {
			hq.changed.Wait()
		}
		hq.mu.Unlock()
		n, err := conn.Read(chunk)
		hq.mu.Lock()
		hq.data[i] = append(hq.data[i], chunk[:n]...)
		hq.size += n
		hq.count(i)
		if err != nil {
			hq.open--
		}
		hq.changed.Broadcast()
		hq.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// count counts the received events of a data connection.
func (hq *HQ) count(i int) {
	var events [256]bytefrog.Event
	for {
		b := hq.data[i][hq.counted[i]:]
		n, size := bytefrog.DecodeEvents(events[:], b)
		hq.events += n
		if n == 0 {
			m, other, err := bytefrog.DecodeData(b, bytefrog.MaxString)
			if err != nil {
				hq.t.Errorf("data connection %d, byte %d: %v", i, hq.counted[i], err)
			}
			if other == 0 {
				return
			}
			if _, isMarker := m.(bytefrog.Marker); isMarker {
				hq.events++
			}
			size = other
		}
		hq.counted[i] += size
	}
}

// WaitEvents waits until n call events and markers have arrived.
func (hq *HQ) WaitEvents(n int) {
	hq.t.Helper()
	hq.Wait("events", func([]bytefrog.Message, [][]byte) bool { return hq.events >= n })
}

// Wait waits until the agent's messages fulfil a condition. The text is for the failure message.
func (hq *HQ) Wait(what string, condition func(control []bytefrog.Message, data [][]byte) bool) {
	hq.t.Helper()
	until := time.Now().Add(patience)
	late := time.AfterFunc(patience, func() {
		hq.mu.Lock()
		defer hq.mu.Unlock()
		hq.changed.Broadcast()
	})
	defer late.Stop()
	hq.mu.Lock()
	defer hq.mu.Unlock()
	for !condition(hq.control, hq.data) {
		if time.Now().After(until) {
			hq.t.Fatalf("expected %s, got none within %v", what, patience)
		}
		hq.changed.Wait()
	}
}

// WaitBreak waits for the n-th data break, counted from 1, and returns it.
func (hq *HQ) WaitBreak(n int) bytefrog.DataBreak {
	hq.t.Helper()
	var found bytefrog.DataBreak
	hq.Wait("a data break", func(control []bytefrog.Message, _ [][]byte) bool {
		count := 0
		for _, m := range control {
			if b, ok := m.(bytefrog.DataBreak); ok {
				if count++; count == n {
					found = b
					return true
				}
			}
		}
		return false
	})
	return found
}

// WaitClosed waits until every connection was read to its end.
func (hq *HQ) WaitClosed() {
	hq.t.Helper()
	hq.Wait("the end of all connections", func([]bytefrog.Message, [][]byte) bool { return hq.open == 0 })
}

// WaitBytes waits until n bytes of data have arrived after the hellos, over all connections.
func (hq *HQ) WaitBytes(n int) {
	hq.t.Helper()
	hq.Wait("data", func([]bytefrog.Message, [][]byte) bool { return hq.size >= n })
}

// ControlMessages returns the messages of the control connection after hello.
func (hq *HQ) ControlMessages() []bytefrog.Message {
	hq.mu.Lock()
	defer hq.mu.Unlock()
	return append([]bytefrog.Message(nil), hq.control...)
}

// DataBytes returns the bytes of each data connection after its hello.
func (hq *HQ) DataBytes() [][]byte {
	hq.mu.Lock()
	defer hq.mu.Unlock()
	return append([][]byte(nil), hq.data...)
}
