// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/lttng/mapping"
	"github.com/callbraid/callbraid/internal/lttng/process"
	"github.com/callbraid/callbraid/internal/lttng/sim/synthetic"
)

// heldMost is the current and the maximum memory of a session's packets, including buffers for reuse.
type heldMost struct {
	mu        sync.Mutex
	most, now int
}

func (h *heldMost) listen(waiting, free int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.most, h.now = max(h.most, waiting+free), waiting
}

// crowd describes a session with traces, streams and large packets that overlap in time.
type crowd struct {
	traces, streams, packets int
	// packetBytes is the size of the largest packet.
	packetBytes int
}

func (c *crowd) recording() *lttnglive.Recording {
	const textBytes, events = 10_000, 10
	var all []*synthetic.Session
	for i := range c.traces {
		s := synthetic.New(fmt.Sprintf("crowd %08d", i), "vpid", "vtid")
		s.Class(mapping.EventCygEntry, "addr", "call_site", "text$")
		for j := range c.streams {
			stream := s.Stream()
			for k := range c.packets {
				begin := 1000*k + j
				stream.Packet(uint64(begin))
				for n := range events {
					stream.Event(uint64(begin+100*n), mapping.EventCygEntry, 7+i, j, 16*(1+n+events*k), 0, strings.Repeat("x", textBytes))
				}
				c.packetBytes = max(c.packetBytes, len(s.PacketBytes(j, &stream.Packets[k])))
			}
		}
		all = append(all, s)
	}
	return synthetic.InOneSession("crowd", all...)
}

func (c *crowd) events() int { return c.traces * c.streams * c.packets * 10 }

// follow reads the session with a bound.
func (c *crowd) follow(t *testing.T, recording *lttnglive.Recording, bound int, options lttnglive.RelayOptions) (*bed, *heldMost) {
	t.Helper()
	r := newRelay(t, []*lttnglive.Recording{recording}, options)
	b := unstartedBed(t, reading(r.address()), func(_ *bed, config *Config) { config.Limits.MaxWaitingBytes = bound })
	var h heldMost
	b.receiver.env.Held = h.listen
	require.NoError(t, b.component().Start(t.Context(), b.host))
	t.Cleanup(b.shutdown)
	b.awaitSaid("The session was closed")
	b.shutdown()
	assert.Zero(t, h.now, "bytes of packets that were read are still counted")
	return b, &h
}

// limited returns the number of barriers because of a bound.
func (s *streamSeen) limited() (n int) {
	for barrier := range s.barriers {
		if barrier.Cause == callevent.CauseLimit {
			n++
		}
	}
	return n
}

const saidNoRoom = "The next packet of a stream has no room: other streams no longer wait for it"

func TestWithRoomForAPacketOfEachStreamEventsAreInOrder(t *testing.T) {
	for name, c := range map[string]crowd{
		"of one trace":  {traces: 1, streams: 20, packets: 5},
		"of two traces": {traces: 2, streams: 10, packets: 5},
	} {
		t.Run(name, func(t *testing.T) {
			recording := c.recording()
			// Half of the memory is for reading ahead.
			bound := 2 * 20 * c.packetBytes
			b, h := c.follow(t, recording, bound, lttnglive.RelayOptions{})
			assert.LessOrEqual(t, h.most, bound)
			assert.Greater(t, h.most, bound/4)
			assert.Zero(t, b.said.FilterMessageSnippet(saidNoRoom).Len())
			assert.Zero(t, b.metric("receiver_lttng_live_events_late"))
			for _, stream := range b.pipeline.streams(t) {
				assert.Zero(t, stream.limited())
			}
			records := b.records()
			require.Len(t, records, c.events())
			last := map[any]int64{}
			for _, r := range records {
				trace := r.resource.Attributes().AsRaw()[process.AttributeProcessID]
				require.GreaterOrEqual(t, int64(r.Timestamp()), last[trace])
				last[trace] = int64(r.Timestamp())
			}
		})
	}
}

func TestWithoutRoomForAPacketOfEachStreamNoEventIsLostAndTheBoundHolds(t *testing.T) {
	for name, c := range map[string]crowd{
		"of one trace":      {traces: 1, streams: 60, packets: 4},
		"of several traces": {traces: 5, streams: 12, packets: 4},
	} {
		t.Run(name, func(t *testing.T) {
			recording := c.recording()
			b, h := c.follow(t, recording, mib, lttnglive.RelayOptions{})
			assert.LessOrEqual(t, h.most, mib+c.packetBytes)
			assert.Greater(t, h.most, mib/2)
			said := b.said.FilterMessageSnippet(saidNoRoom).All()
			require.NotEmpty(t, said)
			assert.EqualValues(t, mib, said[0].ContextMap()["max_waiting_bytes"])
			assert.Positive(t, b.metric("receiver_lttng_live_events_late"))
			require.Len(t, b.records(), c.events())
			for _, stream := range b.pipeline.streams(t) {
				// Each stream of packets belongs to a thread, whose own calls are in order.
				next := map[uint64]string{}
				for _, e := range stream.inOrder(t) {
					require.Less(t, next[e.lane], fmt.Sprintf("%8s", e.function))
					next[e.lane] = fmt.Sprintf("%8s", e.function)
				}
				assert.Positive(t, stream.limited())
			}
		})
	}
}

func TestPacketsOfADroppedTraceUseNoMemory(t *testing.T) {
	c := crowd{traces: 1, streams: 30, packets: 3}
	recording := spoil(t, c.recording(), 7, 1, 0)
	b, h := c.follow(t, recording, mib, lttnglive.RelayOptions{Restart: true})
	assert.LessOrEqual(t, h.most, mib+c.packetBytes)
	assert.EqualValues(t, 1, b.metric("receiver_lttng_live_bad_data"))
	assert.Len(t, b.records(), c.events()-10)
}
