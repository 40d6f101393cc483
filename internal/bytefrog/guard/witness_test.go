// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/testkit"
)

// witness is a collector that notes the messages of an agent, and sends the messages of a test.
type witness struct {
	t       *testing.T
	address string
	answer  []byte
	say     chan []byte

	mu sync.Mutex
	// notes are the messages of the control connection and the ends of connections, in order. events counts messages
	// with a number.
	notes  []string
	events int
	joined int
	open   map[net.Conn]struct{}
}

// watch starts a witness that answers hello. It ends with the test.
func watch(t *testing.T, answer []byte) *witness {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	w := &witness{t: t, address: listener.Addr().String(), answer: answer, say: make(chan []byte, 10), open: map[net.Conn]struct{}{}}
	var serving sync.WaitGroup
	t.Cleanup(func() { _ = listener.Close(); w.leave(); serving.Wait() })
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			w.mu.Lock()
			w.open[conn] = struct{}{}
			w.mu.Unlock()
			serving.Go(func() { w.serve(conn) })
		}
	})
	return w
}

// leave closes all connections, like the end of its process.
func (w *witness) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for conn := range w.open {
		_ = conn.Close()
	}
	clear(w.open)
}

func (w *witness) serve(conn net.Conn) {
	defer conn.Close()
	hello := make([]byte, 2)
	if _, err := io.ReadFull(conn, hello); err != nil {
		return
	}
	if hello[0] == byte(bytefrog.TypeDataHello) {
		w.serveData(conn)
		return
	}
	ended := make(chan struct{})
	var saying sync.WaitGroup
	defer saying.Wait()
	defer close(ended)
	saying.Go(func() {
		_, _ = conn.Write(w.answer)
		for {
			select {
			case b := <-w.say:
				_, _ = conn.Write(b)
			case <-ended:
				return
			}
		}
	})
	in := newReader(conn, mib)
	for {
		m, _, err := in.Next(fromAgent, time.Time{})
		if err != nil {
			w.note("control ended")
			return
		}
		w.note(describe(m))
	}
}

// describe returns a message of a control connection as text.
func describe(m bytefrog.Message) string {
	switch m := m.(type) {
	case bytefrog.Heartbeat:
		return fmt.Sprintf("heartbeat %c", m.Mode)
	case bytefrog.DataBreak:
		return fmt.Sprintf("break %d", m.Sequence)
	default:
		return m.Type().String()
	}
}

// serveData reads a data connection to its end.
func (w *witness) serveData(conn net.Conn) {
	w.mu.Lock()
	i := w.joined
	w.joined++
	w.mu.Unlock()
	_, _ = conn.Write(bytefrog.DataHelloReply{}.AppendTo(nil))
	names := newNames(0, func() uint64 { return 0 }, func() {})
	var b []byte
	piece := make([]byte, chunkBytes)
	for {
		n, err := conn.Read(piece)
		b = append(b, piece[:n]...)
		seen, bad := walk(b, 0, names)
		b = b[seen.taken:]
		w.mu.Lock()
		w.events += seen.events
		w.mu.Unlock()
		switch {
		case bad != nil:
			w.note(fmt.Sprintf("data %d: %v", i, bad))
			return
		case err != nil && errors.Is(err, io.EOF) && len(b) == 0:
			w.note(fmt.Sprintf("data %d ended", i))
			return
		case err != nil:
			w.note(fmt.Sprintf("data %d cut off", i))
			return
		}
	}
}

func (w *witness) note(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes = append(w.notes, what)
}

// seen returns its notes so far.
func (w *witness) seen() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.notes)
}

// order sends a command.
func (w *witness) order(of bytefrog.MessageType) { w.say <- bytefrog.Command{Of: of}.AppendTo(nil) }

// await waits until it has a note so many times.
func (w *witness) await(what string, times int) {
	w.t.Helper()
	ok := assert.True(w.t, testkit.Happens(func() bool {
		n := 0
		for _, note := range w.seen() {
			if note == what {
				n++
			}
		}
		return n >= times
	}), "waited for %q, %d times", what, times)
	require.True(w.t, ok, "it has seen %q", w.seen())
}

// awaitEvents waits until so many messages with a number have arrived.
func (w *witness) awaitEvents(n int) {
	w.t.Helper()
	require.True(w.t, testkit.Happens(func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.events >= n
	}), "waited for %d events", n)
}
