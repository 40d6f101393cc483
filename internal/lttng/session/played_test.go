// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/merge"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/lttng/process"
	"github.com/callbraid/callbraid/internal/lttng/sim/lttngrelay"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
)

// played is a directory with one trace, read without a relay daemon and connections. Its packets and indexes are made
// from the files.
type played struct {
	session  lttnglive.Session
	metadata []byte
	streams  []lttnglive.RecordedStream
}

func openPlayed(t testing.TB, dir string) *played {
	t.Helper()
	source, err := lttngrelay.FromDirectory(dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, source.Close()) })
	p := &played{session: source.Recordings[0].Session}
	for _, s := range source.Recordings[0].Streams {
		if s.Metadata {
			require.Nil(t, p.metadata, "a folder with one trace")
			p.metadata = s.Pieces[0].Data
		} else {
			p.streams = append(p.streams, s)
		}
	}
	return p
}

// feed is the position in the streams.
type feed struct {
	t       testing.TB
	streams []lttnglive.RecordedStream
	next    []int
	buffers *buffers
}

// packet reads the next packet of a stream, or returns nil. It skips promises, because all data exists already.
func (f *feed) packet(stream int) ([]byte, *lttnglive.Index) {
	s := &f.streams[stream]
	for f.next[stream] < len(s.Steps) {
		i := &s.Steps[f.next[stream]].Index
		f.next[stream]++
		if i.Status != lttnglive.IndexOK {
			continue
		}
		length := i.ContentLength()
		data := f.buffers.smallest(length)
		if data == nil {
			data = make([]byte, i.PacketSize/8)
		}
		data = data[:length]
		_, err := s.Packets.ReadAt(data, int64(i.Offset))
		require.NoError(f.t, err)
		return data, i
	}
	return nil, nil
}

// feed returns a feed of the streams that uses these buffers.
func (p *played) feed(t testing.TB, b *buffers) *feed {
	return &feed{t: t, streams: p.streams, next: make([]int, len(p.streams)), buffers: b}
}

// merge reads all events, in order of time, with their packets.
func (p *played) merge(t testing.TB, event func(*ctf.Event, *ctf.Packet)) {
	t.Helper()
	trace := ctf.NewTrace()
	require.NoError(t, trace.Append(p.metadata))
	feed, m := p.feed(t, &buffers{}), merge.New(trace, merge.Options{})
	streams := make([]*merge.Stream, len(p.streams))
	for i := range streams {
		streams[i] = m.AddStream(uint64(i), p.streams[i].Channel)
	}
	for living := len(streams); living > 0; {
		for i, s := range streams {
			if !s.Wanted() {
				continue
			}
			if data, index := feed.packet(i); data == nil {
				s.End()
			} else {
				s.Packet(data, &merge.Index{
					StreamClass: index.StreamClass, Begin: index.TimestampBegin, End: index.TimestampEnd,
					Discarded: index.EventsDiscarded, Content: index.ContentSize,
				})
			}
		}
		for kind := m.Next(); kind != merge.Nothing; kind = m.Next() {
			switch kind {
			case merge.Event:
				event(m.Event, m.Stream.Current())
			case merge.PacketEnd:
				feed.buffers.release(m.Packet)
			case merge.StreamEnd:
				living--
			default:
				require.Fail(t, "a trace without losses", kind)
			}
		}
		require.NoError(t, m.Err())
	}
}

// readSession reads all events like a session. A nil consumer means that the signal has no pipeline.
func (p *played) readSession(t testing.TB, traces consumer.Traces, logs consumer.Logs) {
	t.Helper()
	env := newEnvironment(t, traces)
	if logs != nil {
		queue := newLogQueue(handoverSettings(t, env), logs)
		defer queue.Close()
		env.Logs = &process.LogSettings{MaxRecordBytes: mib, MaxDelay: 200 * time.Millisecond, ScopeName: scopeName, Now: env.Now}
		env.DeliverLogs = func(logs plog.Logs, records, bytes int) { queue.Enqueue(queuedLogs{logs, records, bytes}) }
	}
	r := newSession(env, p.session).recording
	c := ctf.NewTrace()
	require.NoError(t, c.Append(p.metadata))
	trace := r.newTrace(r.key(c, ""))
	trace.begin(c, p.metadata)
	feed, streams := p.feed(t, &r.buffers), make([]*stream, len(p.streams))
	for i := range streams {
		streams[i] = trace.openStream(p.streams[i].Stream)
	}
	for len(trace.streams) > 0 {
		for i, s := range streams {
			if !s.in.Wanted() {
				continue
			}
			if data, index := feed.packet(i); data == nil {
				s.in.End()
			} else {
				s.appendPacket(data, index)
			}
		}
		require.NoError(t, trace.read(r.clock(), r.check))
	}
	r.finish(callevent.CauseEnded)
}

type queuedLogs struct {
	logs           plog.Logs
	records, bytes int
}

// newLogQueue returns the delivery of log records of the receiver.
func newLogQueue(settings handover.Settings, next consumer.Logs) *handover.Logs[queuedLogs] {
	return handover.NewLogs(next, handover.QueueSettings[queuedLogs, plog.Logs]{
		Settings: settings, MaxItems: 100_000, MaxBytes: 64 * mib, Overflow: handover.OverflowWait, MaxAtOnce: 1,
		Size:    func(p *queuedLogs) (records, bytes int) { return p.records, p.bytes },
		Make:    func(parcels []queuedLogs) plog.Logs { return parcels[0].logs },
		Dropped: func(int, string) {},
	})
}
