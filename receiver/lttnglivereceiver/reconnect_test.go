// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"

	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/lttng/mapping"
	"github.com/callbraid/callbraid/internal/lttng/process"
	"github.com/callbraid/callbraid/internal/lttng/sim/synthetic"
)

// handClock is a clock that a test moves.
type handClock struct{ now atomic.Int64 }

func (c *handClock) read() time.Duration   { return time.Duration(c.now.Load()) }
func (c *handClock) move(to time.Duration) { c.now.Store(int64(to)) }

// last returns the time of the last data in recordings.
func last(recordings []*lttnglive.Recording) time.Duration {
	var end time.Duration
	for _, r := range recordings {
		for _, s := range r.Streams {
			for _, step := range s.Steps {
				end = max(end, step.At)
			}
		}
	}
	return end
}

func TestNothingIsReadTwiceWhenTheConnectionIsLost(t *testing.T) {
	recordings := captured(t, "cyg1")
	end := last(recordings)
	var clock handClock
	r := newRelay(t, recordings, lttnglive.RelayOptions{Clock: clock.read})
	b := newBed(t, reading(r.address()))
	const parts = 20
	b.awaitSaid("The session is attached")
	for part := range parts {
		clock.move(end * time.Duration(part+1) / parts)
		attached := b.said.FilterMessage("The session is attached again").Len()
		r.hangUp()
		b.await("another connection", func() bool { return b.said.FilterMessage("The session is attached again").Len() > attached })
	}
	b.awaitRecords(7886)
	b.await("call events", func() bool { return b.pipeline.events() == 3945+3914 })
	clock.move(end + time.Hour)
	b.shutdown()
	assert.Len(t, b.records(), 7886)
	s := b.pipeline.only(t)
	assert.Empty(t, s.twice)
	assert.EqualValues(t, 8951, b.metric("receiver_lttng_live_events_discarded"))
	assert.Zero(t, b.metric("receiver_lttng_live_packets_lost"))
	assert.Zero(t, b.metric("receiver_lttng_live_events_late"))
	assert.Positive(t, b.metric("receiver_lttng_live_connection_failures"))
	// Connections that break repeatedly, with packets in between, are logged rarely.
	for _, line := range []string{
		"The connection to the relay daemon failed: the receiver connects again", "The session is attached again",
		"The sessions of the relay daemon cannot be listed: the receiver tries again", "The relay daemon can be reached again",
	} {
		assert.Less(t, b.saidAloud(line), parts/2, line)
	}
	assert.Positive(t, b.saidAloud("The session is attached again"))
	checkCygSpans(t, "cyg1", b.pipeline)
}

func TestSessionsAreReadAtTheSameTime(t *testing.T) {
	r := newRelay(t, captured(t, "jul1", "cygok", "tp1", "meta1"), lttnglive.RelayOptions{})
	b := newBed(t, reading(r.address()), func(_ *bed, c *Config) { c.Sessions = []string{"*/jul1", "*/cyg*", "vm/m*"} })
	records := b.awaitRecords(282 + 245 + 656)
	sessions := map[string]int{}
	for _, record := range records {
		sessions[textOf(record.resource.Attributes(), process.AttributeSession)]++
	}
	assert.Equal(t, map[string]int{"jul1": 282, "cygok": 245, "meta1": 656}, sessions)
}

func TestASessionThatIsReadToItsEndIsNotReadAgain(t *testing.T) {
	r := newRelay(t, captured(t, "jul1"), lttnglive.RelayOptions{Restart: true})
	b := newBed(t, reading(r.address()))
	b.awaitSaid("The session was closed")
	lists := b.said.Len()
	b.await("more lists of sessions", func() bool { return b.receiver.watcher.rounds.Load() > 5 })
	assert.Equal(t, lists, b.said.Len())
	assert.Len(t, b.records(), 282)
}

func TestARelayDaemonThatStartsLaterIsFound(t *testing.T) {
	r := newRelay(t, captured(t, "jul1"), lttnglive.RelayOptions{})
	address := r.address()
	r.stop()
	b := newBed(t, reading(address))
	said := b.awaitSaid("The sessions of the relay daemon cannot be listed: the receiver tries again")
	assert.Equal(t, zapcore.WarnLevel, said.Level)
	b.await("tries", func() bool { return b.metric("receiver_lttng_live_connection_failures") > 3 })
	assert.Equal(t, 1, b.said.FilterMessage("The sessions of the relay daemon cannot be listed: the receiver tries again").Len())

	again := newRelayAt(t, address, captured(t, "jul1"), lttnglive.RelayOptions{})
	b.awaitSaid("The relay daemon can be reached again")
	b.awaitRecords(282)
	require.NotNil(t, again)
}

func TestASessionReadFromNowOnLosesNothingOnAnotherConnection(t *testing.T) {
	recordings := captured(t, "cyg1")
	moments := packetTimesOf(recordings)
	var clock handClock
	r := newRelay(t, recordings, lttnglive.RelayOptions{Clock: clock.read})
	// Another viewer was there before: half of the recording is old.
	before := newBed(t, reading(r.address()), withoutTraces)
	before.awaitSaid("The session is attached")
	clock.move(moments[len(moments)/2])
	before.await("packets", func() bool { return before.metric("receiver_lttng_live_packets") >= int64(len(moments)/2) })
	before.shutdown()

	b := newBed(t, reading(r.address()), func(_ *bed, c *Config) { c.Seek = SeekLast })
	b.awaitSaid("The session is attached")
	clock.move(moments[3*len(moments)/4])
	b.await("some packets", func() bool { return b.metric("receiver_lttng_live_packets") >= int64(len(moments)/4-1) })
	r.hangUp()
	b.awaitSaid("The session is attached again")
	clock.move(last(recordings) + time.Hour)
	b.awaitSaid("The session was closed")
	b.shutdown()
	n := len(b.records())
	assert.Positive(t, n)
	assert.Less(t, n, 7886)
	assert.EqualValues(t, n, b.metric("receiver_lttng_live_events"))
	for _, s := range b.pipeline.streams(t) {
		assert.Empty(t, s.twice)
		s.inOrder(t)
	}
	seen := map[string]bool{}
	for _, record := range b.records() {
		key := fmt.Sprint(record.Timestamp(), record.EventName(), record.Attributes().AsRaw())
		assert.False(t, seen[key], key)
		seen[key] = true
	}
}

// The data of a stream that was closed between connections is unknown: calls that were open then may have ended, and
// so may calls in other streams, up to the new connection.
func TestAStreamThatAnotherConnectionLacksIsABreak(t *testing.T) {
	s := synthetic.New("gone", "vpid", "vtid")
	s.Class(mapping.EventCygEntry, "addr", "call_site")
	s.Class(mapping.EventCygExit, "addr", "call_site")
	stays := s.Stream().Packet(10).Event(10, mapping.EventCygEntry, 7, 7, 16, 0)
	// Recorded before the new connection: an exit and an entry between these are lost with the other stream.
	stays.Packet(30).Event(30, mapping.EventCygEntry, 7, 7, 48, 0).Packet(40).Event(40, mapping.EventCygExit, 7, 7, 48, 0).Event(41, mapping.EventCygExit, 7, 7, 16, 0)
	stays.Packet(100).Event(100, mapping.EventCygEntry, 7, 7, 64, 0).Event(110, mapping.EventCygExit, 7, 7, 64, 0)
	s.Stream().Packet(5).Event(5, mapping.EventCygEntry, 7, 8, 32, 0).Event(20, mapping.EventCygExit, 7, 8, 32, 0)
	for name, c := range map[string]struct {
		// at is the recording time of the calls after the first one. records is the number of records that arrive
		// together with them.
		at      time.Duration
		records int
		want    map[string]string
	}{
		"with calls meanwhile":  {0, 6, map[string]string{"0x10": "disconnected", "0x20": "", "0x40": ""}},
		"without any meanwhile": {time.Hour, 2, map[string]string{"0x10": "disconnected", "0x20": "", "0x30": "", "0x40": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			session := func(at time.Duration) *lttnglive.Recording {
				r := s.Recording(1)
				r.End = 2 * time.Hour
				for i := range r.Streams {
					r.Streams[i].End = r.End
				}
				steps := r.Streams[1].Steps
				steps[1].At, steps[2].At, steps[3].At = at, at, time.Hour
				return r
			}
			var clock handClock
			r := newRelay(t, []*lttnglive.Recording{session(time.Hour)}, lttnglive.RelayOptions{Clock: clock.read})
			b := newBed(t, reading(r.address()), func(_ *bed, c *Config) { c.MaxDelay = time.Hour })
			b.await("packets", func() bool { return b.metric("receiver_lttng_live_packets") == 2 })
			r.stop()
			after := session(c.at)
			after.Streams = after.Streams[:2]
			var asked atomic.Int64
			newRelayAt(t, r.address(), []*lttnglive.Recording{after}, lttnglive.RelayOptions{Clock: func() time.Duration {
				asked.Add(1)
				return clock.read()
			}})
			b.awaitSaid("The session is attached again")
			b.awaitRecords(c.records)
			then := asked.Load()
			b.await("more requests", func() bool { return asked.Load() > then+50 })
			clock.move(time.Hour)
			b.awaitRecords(8)
			clock.move(3 * time.Hour)
			b.awaitSaid("The session was closed")
			b.shutdown()
			seen := b.pipeline.only(t)
			require.Len(t, seen.inOrder(t), 8)
			spans := map[string]string{}
			for _, span := range b.pipeline.spans(t) {
				spans[span.Name()] = textOf(span.Attributes(), "callbraid.truncated")
			}
			assert.Equal(t, c.want, spans, "%v", seen.barriers)
		})
	}
}

// A stream that hung up may wait for others in its trace when the connection is lost. It is announced again on the
// next one.
func TestAWaitingStreamThatHungUpContinuesOnAnotherConnection(t *testing.T) {
	s := synthetic.New("held", "vpid", "vtid")
	s.Class("shop:sold", "number")
	s.Stream().Packet(10).Event(10, "shop:sold", 7, 7, 1).Event(500, "shop:sold", 7, 7, 2)
	s.Stream().Packet(5).Event(5, "shop:sold", 7, 8, 3).Packet(600).Event(600, "shop:sold", 7, 8, 4)
	recording := s.Recording(1)
	recording.End = 3 * time.Hour
	for i := range recording.Streams {
		recording.Streams[i].End = 3 * time.Hour
	}
	recording.Streams[1].End = time.Hour
	recording.Streams[2].Steps[1].At = 2 * time.Hour
	var clock handClock
	var asked atomic.Int64
	r := newRelay(t, []*lttnglive.Recording{recording}, lttnglive.RelayOptions{Clock: func() time.Duration {
		asked.Add(1)
		return clock.read()
	}})
	b := newBed(t, reading(r.address()), func(_ *bed, c *Config) { c.MaxDelay = time.Hour })
	b.await("packets", func() bool { return b.metric("receiver_lttng_live_packets") == 2 })
	clock.move(time.Hour)
	then := asked.Load()
	b.await("the hang-up", func() bool { return asked.Load() > then+50 })
	r.hangUp()
	b.await("another connection", func() bool { return b.said.FilterMessage("The session is attached again").Len() > 0 })
	clock.move(3 * time.Hour)
	b.awaitRecords(4)
	b.awaitSaid("The session was closed")
	assert.Zero(t, b.metric("receiver_lttng_live_streams"))
}
