// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/merge"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/receiver/lttnglivereceiver/internal/metadata"
)

// begun is a trace of a synthetic session that a follower has begun to read, without a
// relay daemon. No pipeline takes anything.
func begun(t *testing.T, s *synthetic, change func(*Config)) *trace {
	t.Helper()
	config := createDefaultConfig()
	change(config)
	r, err := newReceiver(receivertest.NewNopSettings(metadata.Type), config)
	require.NoError(t, err)
	t.Cleanup(r.env.telemetry.shutdown)
	r.env.ctx, r.env.reading = t.Context(), t.Context()
	r.env.metrics = newMetricsLoop(r.env, r.settings, nil, nil)
	f := newFollower(r.env, lttnglive.Session{ID: 1, Host: s.host, Name: s.name})
	c := ctf.NewTrace()
	require.NoError(t, c.Append(s.metadata()))
	trace := newTrace(f, f.identify(c, ""))
	f.traces[trace.key] = trace
	trace.begin(c, s.metadata())
	return trace
}

func TestStreamsThatComeAndGoLeaveLittleBehind(t *testing.T) {
	const most, streams = 20, 200
	s := newSynthetic("restless")
	s.class("shop:sold", "number")
	s.stream().packet(10).event(10, "shop:sold", 1)
	trace := begun(t, s, func(c *Config) { c.Limits.MaxStreams = most })
	packet := s.packetBytes(0, &s.streams[0].packets[0])
	index := lttnglive.Index{PacketSize: uint64(len(packet)) * 8, ContentSize: uint64(len(packet)) * 8, TimestampBegin: 10, TimestampEnd: 10}
	// A stream that stays lets the trace live.
	trace.open(lttnglive.Stream{Channel: "stays"}).in.Promise(0, 1000)
	read := func(channel string) uint64 {
		before := trace.events
		stream := trace.open(lttnglive.Stream{Channel: channel})
		stream.give(packet, &index)
		stream.in.End()
		require.NoError(t, trace.run())
		return trace.events - before
	}
	channel := func(i int) string { return fmt.Sprint("channel", i) }
	for i := range streams {
		require.EqualValues(t, 1, read(channel(i)))
		require.Zero(t, read(channel(i)), "what was read is not read again")
		require.Zero(t, read(channel(max(0, i-most/4))), "nor where other streams have ended since")
		require.Len(t, trace.streams, 1)
		require.LessOrEqual(t, len(trace.numbered), 2)
		require.LessOrEqual(t, len(trace.record.Streams), most)
		require.LessOrEqual(t, len(trace.follower.ended.at), most)
	}
	trace.drop(callevent.CauseBadData)
	require.LessOrEqual(t, len(trace.record.Streams), most)
}

func TestBadPacketsOfATraceAreBounded(t *testing.T) {
	s := newSynthetic("bad")
	s.class("shop:sold", "number")
	trace := begun(t, s, func(*Config) {})
	for i := range uint64(2 * maxBad) {
		stream := trace.open(lttnglive.Stream{Channel: fmt.Sprint(i)})
		stream.give(nil, &lttnglive.Index{TimestampBegin: i})
		trace.passOver(stream)
	}
	assert.Len(t, trace.bad, maxBad)
}

// A session may be told with other traces on every connection.
func TestTracesThatAreNotToldAgainAreForgotten(t *testing.T) {
	session := func(i int) *lttnglive.Recording {
		s := newSynthetic(fmt.Sprintf("trace %08d", i), "vpid", "vtid")
		s.class(cygEntry, "addr", "call_site")
		s.stream().packet(1).event(1, cygEntry, 7, 7, 16, 0)
		r := s.recording(1)
		r.Session.Name, r.End = "changing", lttnglive.Never
		for j := range r.Streams {
			r.Streams[j].End = lttnglive.Never
		}
		return r
	}
	const connections = 10
	r := newRelay(t, []*lttnglive.Recording{session(0)}, lttnglive.RelayOptions{})
	b := newBed(t, reading(r.address()), func(_ *bed, c *Config) { c.Reconnect.MaxInterval = 10 * time.Millisecond })
	var f *follower
	for i := range connections {
		b.await("its call", func() bool { return b.pipeline.events() == i+1 })
		f = b.receiver.watcher.active()[0]
		r.stop()
		r = newRelayAt(t, r.address(), []*lttnglive.Recording{session(i + 1)}, lttnglive.RelayOptions{})
	}
	b.await("its call", func() bool { return b.pipeline.events() == connections+1 })
	b.await("the last one's end", func() bool {
		ended := 0
		for _, s := range b.pipeline.streams(t) {
			for barrier := range s.barriers {
				if barrier.Kind == callevent.BarrierEnd {
					ended++
				}
			}
		}
		return ended == connections
	})
	b.shutdown()
	<-f.done
	assert.LessOrEqual(t, len(f.traces), 2)
	for _, s := range b.pipeline.streams(t) {
		assert.Empty(t, s.twice)
	}
}

func TestPositionsAreBoundedByTheirSize(t *testing.T) {
	p := newPositions()
	const traces = 100
	for i := range traces {
		r := &traceRecord{Streams: map[string]merge.Position{}}
		for j := range 1000 {
			r.Streams[fmt.Sprint(i, j, strings.Repeat("x", 4000))] = merge.Position{}
		}
		p.put(t.Context(), fmt.Sprint(i), r)
		require.LessOrEqual(t, p.bytes, maxPositionBytes)
	}
	assert.Less(t, len(p.records), 20)
	assert.Equal(t, len(p.records), len(p.order))
	assert.Len(t, p.get(t.Context(), fmt.Sprint(traces-1)).Streams, 1000, "that of the last one is there")
	size := 0
	for _, r := range p.records {
		size += r.size()
	}
	assert.Equal(t, size, p.bytes)
}
