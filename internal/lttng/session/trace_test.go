// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/lttng/sim/synthetic"
)

// beginRecording begins to read a session with one trace, without a relay daemon. No pipeline accepts data.
func beginRecording(t *testing.T, s *synthetic.Session, change func(*Environment)) (*recording, *trace) {
	t.Helper()
	env := newEnvironment(t, nil)
	change(env)
	r := newSession(env, lttnglive.Session{ID: 1, Host: s.Host, Name: s.Name}).recording
	c := ctf.NewTrace()
	require.NoError(t, c.Append(s.Metadata()))
	trace := r.newTrace(r.key(c, ""))
	trace.begin(c, s.Metadata())
	return r, trace
}

// read reads all events of a trace.
func read(t *trace) error { return t.read(0, func() bool { return true }) }

func TestEndedStreamsUseLittleMemory(t *testing.T) {
	const most, streams = 20, 200
	s := synthetic.New("restless")
	s.Class("shop:sold", "number")
	s.Stream().Packet(10).Event(10, "shop:sold", 1)
	_, trace := beginRecording(t, s, func(e *Environment) { e.Settings.Limits.Streams = most })
	packet := s.PacketBytes(0, &s.Streams[0].Packets[0])
	index := lttnglive.Index{PacketSize: uint64(len(packet)) * 8, ContentSize: uint64(len(packet)) * 8, TimestampBegin: 10, TimestampEnd: 10}
	// This stream stays, so the trace does not end.
	trace.openStream(lttnglive.Stream{Channel: "stays"}).in.Promise(0, 1000)
	readStream := func(channel string) uint64 {
		before := trace.events
		stream := trace.openStream(lttnglive.Stream{Channel: channel})
		stream.appendPacket(packet, &index)
		stream.in.End()
		require.NoError(t, read(trace))
		return trace.events - before
	}
	channel := func(i int) string { return fmt.Sprint("channel", i) }
	for i := range streams {
		require.EqualValues(t, 1, readStream(channel(i)))
		require.Zero(t, readStream(channel(i)), "events are not read twice")
		require.Zero(t, readStream(channel(max(0, i-most/4))), "nor where other streams have ended since")
		require.Len(t, trace.streams, 1)
		require.LessOrEqual(t, len(trace.numbered), 2)
		require.LessOrEqual(t, len(trace.position.Streams), most)
		require.LessOrEqual(t, len(trace.ended.at), most)
	}
	trace.drop(callevent.CauseBadData)
	require.LessOrEqual(t, len(trace.position.Streams), most)
}

func TestBadPacketsOfATraceAreBounded(t *testing.T) {
	s := synthetic.New("bad")
	s.Class("shop:sold", "number")
	_, trace := beginRecording(t, s, func(*Environment) {})
	for i := range uint64(2 * maxBad) {
		stream := trace.openStream(lttnglive.Stream{Channel: fmt.Sprint(i)})
		stream.appendPacket(nil, &lttnglive.Index{TimestampBegin: i})
		trace.leaveOut(stream)
	}
	assert.Len(t, trace.bad, maxBad)
}

// A stream that hung up may be announced again with another ID.
func TestAStreamThatHungUpMayBeAnnouncedAgainOnTheSameConnection(t *testing.T) {
	s := synthetic.New("again", "vpid", "vtid")
	s.Class("shop:sold", "number")
	r, trace := beginRecording(t, s, func(*Environment) {})
	a := newAttachment(t.Context(), r, &relayConnection{}, nil)
	src, announced := &source{trace: trace}, lttnglive.Stream{ID: 1, Path: "ust", Channel: "c"}
	require.NoError(t, a.openStream(src, announced))
	a.hangUp(a.streams[0])
	announced.ID = 2
	require.NoError(t, a.openStream(src, announced))
	require.Len(t, a.streams, 1, "it is asked once in a round")
	assert.EqualValues(t, 2, a.streams[0].id)
	assert.True(t, a.wants(a.streams[0]))
	assert.Error(t, a.openStream(src, announced))
}
