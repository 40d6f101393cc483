// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/connreader"
	"github.com/callbraid/callbraid/internal/call/callevent"
)

// feed feeds bytes to a data connection in pieces, as reads would return them. It reports whether the
// connection would be read further.
func feed(t testing.TB, d *dataConnection, b []byte, size int) bool {
	conn := d.in.Conn().(*piece)
	now := time.Now()
	for len(b) > 0 {
		conn.bytes = b[:min(size, len(b))]
		n, err := d.in.Read(now, time.Time{})
		require.NoError(t, err)
		b = b[n:]
		if !d.process(n, now) {
			return false
		}
		now = now.Add(time.Millisecond)
		d.batch.Attend(now)
	}
	return true
}

// helloSize is the size of hello and of data hello.
const helloSize = 2

// FuzzDataConnection: for any data in any pieces, all batches can be unpacked, they have as many events
// as were received, and the memory stays within its limit.
func FuzzDataConnection(f *testing.F) {
	for _, name := range []string{"shop", "suspend"} {
		for _, data := range openCapture(f, name).Data {
			f.Add(data[helloSize:min(len(data), 4_000)], 700)
		}
	}
	named := encode(bytefrog.MapMethod{Method: 1, Signature: "demo/Shop.open;1;()V"}, bytefrog.MapThreadName{Thread: 1, Name: "main"})
	entry := func(method uint32, thread uint16) []byte {
		return bytefrog.AppendEvent(nil, bytefrog.Event{Type: bytefrog.TypeMethodEntry, Method: method, Thread: thread})
	}
	f.Add(append(named, entry(1, 1)...), 7)
	f.Add(encode(bytefrog.Marker{Sequence: 1, Key: "k", Value: "v"}, bytefrog.ErrorMessage{Text: "x"}), 1)
	f.Add(slices.Concat(encode(bytefrog.MapMethod{Method: 5, Signature: "a"}), entry(5, 3), encode(bytefrog.MapMethod{Method: 5, Signature: "b"})), 1000)
	const minRunMemory = 1 << 20
	f.Fuzz(func(t *testing.T, b []byte, size int) {
		sent := 0
		check, err := consumer.NewTraces(func(_ context.Context, traces ptrace.Traces) error {
			span := traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
			data, err := callevent.Data(span)
			require.NoError(t, err)
			var batch callevent.Batch
			require.NoError(t, batch.Unpack(data))
			sent += batch.Len()
			return nil
		})
		require.NoError(t, err)
		env := defaultEnvironment(t, check)
		env.Settings.NameWait = 3 * time.Millisecond
		run := startedRunIn(t, env, minRunMemory)
		_, conn := net.Pipe()
		d, err := newDataConnection(run, &piece{Conn: conn})
		require.NoError(t, err)
		require.NoError(t, run.data.attach(d.in))
		feed(t, d, b, max(1, size%(dataBytes+1)))
		require.LessOrEqual(t, d.in.Size(), bytefrog.MaxMessageSize(bytefrog.MaxString))
		d.finishNow()
		require.EqualValues(t, run.stream.Received(), sent)
		require.LessOrEqual(t, run.Memory.Bounded(), int64(minRunMemory))
		run.data.finished.Done()
	})
}

// FuzzControlConnection: for any data in any pieces, the result equals that of a slow and obvious model: the
// mode, the breaks, the records, and the ending. Then the reader has stopped, and only breaks have memory.
func FuzzControlConnection(f *testing.F) {
	for _, name := range []string{"shop", "suspend", "startsuspended", "maven"} {
		control := openCapture(f, name).Control
		f.Add(control[helloSize:min(len(control), 5_000)], 700)
	}
	f.Add(encode(bytefrog.DataBreak{Sequence: 1 << 31}, bytefrog.Heartbeat{Mode: 'X'}), 3)
	f.Add(encode(
		bytefrog.Heartbeat{Mode: bytefrog.ModeTracing, SendBuffers: 7}, bytefrog.DataBreak{Sequence: 5}, bytefrog.DataBreak{Sequence: 5},
		bytefrog.ClassReport{Result: bytefrog.TypeClassTransformFailed, Class: "demo/Shop"},
		bytefrog.Heartbeat{Mode: bytefrog.ModeShuttingDown}), 1)
	f.Add(encode(bytefrog.ErrorMessage{Text: "no memory"}, bytefrog.Heartbeat{Mode: bytefrog.ModeShuttingDown}, bytefrog.ErrorMessage{Text: "again"}), 100)
	f.Fuzz(func(t *testing.T, b []byte, piece int) {
		b = b[:min(len(b), 1<<16)]
		agent, collector := net.Pipe()
		t.Cleanup(func() { _ = collector.Close() })
		records := &recordedTexts{}
		run := unconnectedRun(defaultEnvironment(t, consumertest.NewNop()), runMemory, collector, records)
		close(run.life.started)
		go (&controlReader{run: run}).read()
		written := make(chan struct{})
		go func() {
			defer close(written)
			for part := range slices.Chunk(b, max(1, piece&0xfff)) {
				if _, err := agent.Write(part); err != nil {
					return // the run ended before
				}
			}
			_ = agent.Close() // the run ends then
		}()
		<-run.control.ended
		require.NoError(t, agent.Close())
		<-written
		run.batches.Wait()

		want := readSlowly(b)
		require.True(t, run.life.isLeaving())
		require.Equal(t, want.cause, run.life.ending.Cause)
		require.Equal(t, want.text, run.life.ending.Text)
		require.Equal(t, want.offset, offsetOf(run.life.ending.Err))
		require.Equal(t, want.mode, run.control.lastMode())
		require.EqualValues(t, want.sendBuffers, run.control.sendBuffers.Load())
		require.EqualValues(t, want.heartbeats, run.control.heartbeats.Load())
		require.EqualValues(t, want.breaks, run.breaks.counts[callevent.CauseSuspended].Load())
		require.Equal(t, want.news, run.stream.NewBarriers())
		require.Equal(t, want.records, records.lines)
		require.EqualValues(t, 2*int(unsafe.Sizeof(callevent.Barrier{}))*len(want.barriers), run.Memory.Bounded(), "only breaks are held")
	})
}

// controlModel is the state after the messages of a control connection.
type controlModel struct {
	mode                    bytefrog.Mode
	sendBuffers, heartbeats int
	breaks                  int
	// barriers has those with the highest numbers, news those that arrived last.
	barriers, news []callevent.Barrier
	records        []string
	cause          callevent.Cause
	text           string
	// offset is that of the unreadable byte; -1: none.
	offset int64
}

// readSlowly reads all bytes of a control connection in one piece. No data has arrived, so sequence
// numbers are relative to 0.
func readSlowly(b []byte) controlModel {
	m := controlModel{mode: bytefrog.ModeInitializing, offset: -1}
	ended := func(cause callevent.Cause, text string, offset int64) {
		if m.text == "" {
			m.cause, m.text, m.offset = cause, text, offset
		}
	}
	const bad = "data on a control connection could not be read"
	at := 0
	for at < len(b) {
		message, n, err := bytefrog.DecodeControl(b[at:], bytefrog.MaxString)
		if err != nil {
			var protocol *bytefrog.ProtocolError
			errors.As(err, &protocol)
			ended(callevent.CauseBadData, bad, int64(at+protocol.Offset))
			return m
		}
		if n == 0 {
			break // the rest is missing
		}
		switch message := message.(type) {
		case bytefrog.Heartbeat:
			if message.Mode != m.mode {
				m.records = append(m.records, "mode "+message.Mode.String())
			}
			m.mode, m.sendBuffers = message.Mode, int(message.SendBuffers)
			m.heartbeats++
		case bytefrog.DataBreak:
			if message.Sequence >= 1<<31 {
				ended(callevent.CauseBadData, bad, int64(at+1))
				return m
			}
			point := callevent.Point(uint64(message.Sequence), callevent.CauseSuspended)
			if !slices.Contains(m.barriers, point) {
				m.breaks++
				m.barriers = append(m.barriers, point)
				slices.SortFunc(m.barriers, func(a, b callevent.Barrier) int { return cmp.Compare(a.From, b.From) })
				m.barriers = m.barriers[max(0, len(m.barriers)-callevent.MaxBarriers):]
				m.news = append(m.news, point)
				m.news = m.news[max(0, len(m.news)-callevent.MaxBarriers):]
			}
		case bytefrog.ClassReport:
			m.records = append(m.records, message.Result.String()+" "+message.Class)
		case bytefrog.ErrorMessage:
			m.records = append(m.records, "error "+message.Text)
			ended(callevent.CauseDisconnected, "the agent reported an error", -1)
		}
		at += n
	}
	switch {
	case m.mode == bytefrog.ModeShuttingDown:
		ended(callevent.CauseEnded, "the agent ended the run", -1)
	case at < len(b):
		ended(callevent.CauseDisconnected, "the control connection was lost", int64(len(b)))
	default:
		ended(callevent.CauseDisconnected, "the control connection was lost", -1)
	}
	return m
}

// offsetOf returns the offset of the unreadable byte; -1: the error has another reason.
func offsetOf(err error) int64 {
	var bad *connreader.BadData
	if errors.As(err, &bad) {
		return bad.Offset
	}
	return -1
}
