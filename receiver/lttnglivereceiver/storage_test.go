// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/lttng/sim/synthetic"
	"github.com/callbraid/callbraid/internal/testkit/storagetest"
)

// storing is an option: positions are kept in a storage.
func storing(m *storagetest.Memory) option {
	return func(b *bed, c *Config) { c.Storage, b.host = &storagetest.ID, m.Host() }
}

func TestACollectorContinuesAtThePositionsOfThePreviousOne(t *testing.T) {
	recordings := captured(t, "cyg1")
	moments := packetTimesOf(recordings)
	require.Greater(t, len(moments), 50)
	var clock handClock
	r := newRelay(t, recordings, lttnglive.RelayOptions{Clock: clock.read})
	kept := storagetest.New()
	all := &pipeline{}
	records := 0
	const parts = 8
	for part := range parts {
		b := newBed(t, reading(r.address()), storing(kept), func(b *bed, _ *Config) { b.pipeline = all })
		// A recording's time starts when it is attached for the first time.
		b.awaitSaid("The session is attached")
		clock.move(moments[(part+1)*(len(moments)-1)/parts])
		b.await("a packet", func() bool { return b.metric("receiver_lttng_live_packets") > 0 })
		if part == parts-1 {
			clock.move(last(recordings))
			b.await("call events", func() bool { return all.events() == 3945+3914 })
			b.await("log records", func() bool { return records+b.logs.LogRecordCount() == 7886 })
		}
		b.shutdown()
		records += b.logs.LogRecordCount()
	}
	assert.Equal(t, 7886, records)
	s := all.only(t)
	assert.Empty(t, s.twice)
	assert.Len(t, s.inOrder(t), 3945+3914)
	assert.False(t, s.has(callevent.BarrierEnd, callevent.CauseShutdown))
	checkCygSpans(t, "cyg1", all)
	assert.Zero(t, kept.Open())
	assert.Equal(t, 2, kept.Len())
}

// packetTimesOf returns the times of the packets of recordings.
func packetTimesOf(recordings []*lttnglive.Recording) []time.Duration {
	var times []time.Duration
	for _, r := range recordings {
		for _, s := range r.Streams {
			for _, step := range s.Steps {
				if step.Index.Status == lttnglive.IndexOK {
					times = append(times, step.At)
				}
			}
		}
	}
	slices.Sort(times)
	return times
}

// Sessions have traces at the same paths.
func TestATraceWithoutUUIDBelongsToItsSession(t *testing.T) {
	recording := func(name string, id uint64) *lttnglive.Recording {
		s := synthetic.New(name, "vpid", "vtid")
		s.Anonymous = true
		s.Class("shop:sold", "number")
		s.Stream().Packet(10).Event(10, "shop:sold", 7, 7, 1).Event(20, "shop:sold", 7, 7, 2)
		return s.Recording(id)
	}
	for name, test := range map[string]struct {
		again *lttnglive.Recording
		want  int
	}{
		"a session with another name":      {recording("bakery", 1), 2},
		"a session that was created again": {recording("shop", 2), 2},
		"the same session":                 {recording("shop", 1), 0},
	} {
		t.Run(name, func(t *testing.T) {
			kept := storagetest.New()
			for i, part := range []struct {
				recording *lttnglive.Recording
				want      int
			}{{recording("shop", 1), 2}, {test.again, test.want}} {
				r := newRelay(t, []*lttnglive.Recording{part.recording}, lttnglive.RelayOptions{})
				b := newBed(t, reading(r.address()), storing(kept))
				b.awaitSaid("The session was closed")
				b.shutdown()
				assert.Equal(t, part.want, b.logs.LogRecordCount(), "part %d", i)
			}
		})
	}
}

func TestAnErrorNamesAMissingOrWrongStorage(t *testing.T) {
	id := component.MustNewID("memory")
	for name, c := range map[string]struct {
		extensions map[component.ID]component.Component
		want       string
	}{
		"missing":     {nil, `storage is "memory": there is no such extension`},
		"not storage": {map[component.ID]component.Component{id: nil}, `storage is "memory": it is no storage extension`},
	} {
		t.Run(name, func(t *testing.T) {
			b := unstartedBed(t, func(_ *bed, c *Config) { c.Storage = &id })
			err := b.component().Start(context.Background(), storagetest.Host(c.extensions))
			require.ErrorContains(t, err, c.want)
			b.shutdown()
		})
	}
}
