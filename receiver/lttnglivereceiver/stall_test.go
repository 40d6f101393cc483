// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/lttng/mapping"
	"github.com/callbraid/callbraid/internal/lttng/sim/synthetic"
)

func TestASilentStreamDelaysOthersForMaxDelayAtMost(t *testing.T) {
	s := synthetic.New("stalled", "vpid", "vtid")
	s.Class(mapping.EventCygEntry, "addr", "call_site")
	s.Stream().Packet(1).Event(10, mapping.EventCygEntry, 7, 7, 16, 0).Event(20, mapping.EventCygEntry, 7, 7, 32, 0)
	s.Stream().Packet(5).Event(15, mapping.EventCygEntry, 7, 7, 48, 0).Event(30, mapping.EventCygEntry, 7, 7, 64, 0)
	recording := s.Recording(1)
	recording.End = 2 * time.Second
	for i := range recording.Streams {
		recording.Streams[i].End = 2 * time.Second
	}
	recording.Streams[2].Steps[0].At = time.Second
	var clock handClock
	r := newRelay(t, []*lttnglive.Recording{recording}, lttnglive.RelayOptions{Clock: clock.read})
	b := newBed(t, reading(r.address()), func(_ *bed, c *Config) { c.MaxDelay = 50 * time.Millisecond })
	said := b.awaitSaid("A stream sends nothing: other streams no longer wait for it")
	assert.Equal(t, "ust/uid/0/64-bit/channel0_1", said.ContextMap()["stream"])
	b.awaitRecords(2)
	clock.move(2 * time.Second)
	b.awaitSaid("The session was closed")
	b.shutdown()
	require.Len(t, b.records(), 4)
	assert.EqualValues(t, 1, b.metric("receiver_lttng_live_events_late"))
	stream := b.pipeline.only(t)
	assert.Equal(t, []string{"enter 0x10 7", "enter 0x20 7", "enter 0x30 7", "enter 0x40 7"}, stream.story(t))
	// Calls from the begin of its silence until it has caught up are not paired.
	assert.Positive(t, stream.barriers[callevent.Interval(0, 3, callevent.CauseUnresponsive)])
}

func TestANewStreamIsFoundWhileTheOthersAreSilent(t *testing.T) {
	s := synthetic.New("silent", "vpid", "vtid")
	s.Class(mapping.EventCygEntry, "addr", "call_site")
	s.Stream().Packet(1).Event(10, mapping.EventCygEntry, 7, 7, 16, 0)
	s.Stream().Packet(50).Event(60, mapping.EventCygEntry, 8, 8, 32, 0)
	recording := s.Recording(1)
	recording.End = 4 * time.Second
	for i := range recording.Streams {
		recording.Streams[i].End = 4 * time.Second
	}
	recording.Streams[2].At, recording.Streams[2].Steps[0].At = time.Second, time.Second
	var clock handClock
	r := newRelay(t, []*lttnglive.Recording{recording}, lttnglive.RelayOptions{Clock: clock.read})
	b := newBed(t, reading(r.address()), func(_ *bed, c *Config) { c.MaxDelay = 50 * time.Millisecond })
	b.awaitRecords(1)
	clock.move(2 * time.Second)
	b.awaitRecords(2)
	clock.move(4 * time.Second)
	b.awaitSaid("The session was closed")
	b.shutdown()
}
