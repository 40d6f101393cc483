// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/lttng/mapping"
	"github.com/callbraid/callbraid/internal/lttng/session"
	"github.com/callbraid/callbraid/internal/lttng/sim/synthetic"
)

// A session may have other traces on every connection.
func TestTracesThatAreNotAnnouncedAgainAreRemoved(t *testing.T) {
	sessionWith := func(i int) *lttnglive.Recording {
		s := synthetic.New(fmt.Sprintf("trace %08d", i), "vpid", "vtid")
		s.Class(mapping.EventCygEntry, "addr", "call_site")
		s.Stream().Packet(1).Event(1, mapping.EventCygEntry, 7, 7, 16, 0)
		r := s.Recording(1)
		r.Session.Name, r.End = "changing", lttnglive.Never
		for j := range r.Streams {
			r.Streams[j].End = lttnglive.Never
		}
		return r
	}
	const connections = 10
	r := newRelay(t, []*lttnglive.Recording{sessionWith(0)}, lttnglive.RelayOptions{})
	b := newBed(t, reading(r.address()), func(_ *bed, c *Config) { c.Reconnect.MaxInterval = 10 * time.Millisecond })
	var read *session.Session
	for i := range connections {
		b.await("its call", func() bool { return b.pipeline.events() == i+1 })
		read = b.receiver.watcher.active()[0].runningSession.(*session.Session)
		r.stop()
		r = newRelayAt(t, r.address(), []*lttnglive.Recording{sessionWith(i + 1)}, lttnglive.RelayOptions{})
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
	<-read.Done()
	assert.LessOrEqual(t, read.Traces(), 2)
	for _, s := range b.pipeline.streams(t) {
		assert.Empty(t, s.twice)
	}
}
