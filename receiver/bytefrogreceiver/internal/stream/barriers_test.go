// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

func point(at uint64) callevent.Barrier { return callevent.Point(at, callevent.CauseSuspended) }

func TestABatchCarriesTheBarriersThatConcernItsEvents(t *testing.T) {
	wide := callevent.Interval(5, 60, callevent.CauseSuspended)
	var b barriers
	for _, barrier := range []callevent.Barrier{point(40), point(10), wide, point(20), point(80)} {
		b.add(barrier)
	}
	cases := map[string]struct {
		first, last uint64
		want        []callevent.Barrier
	}{
		"before all":                          {0, 4, nil},
		"an interval that begins at its end":  {0, 5, []callevent.Barrier{wide}},
		"the last at its first number":        {20, 30, []callevent.Barrier{wide, point(20)}},
		"inside, and the last before":         {30, 40, []callevent.Barrier{wide, point(20), point(40)}},
		"behind the interval":                 {70, 75, []callevent.Barrier{point(40)}},
		"all of it":                           {0, 100, []callevent.Barrier{wide, point(10), point(20), point(40), point(80)}},
		"behind all":                          {90, 99, []callevent.Barrier{point(80)}},
		"only the last of those that precede": {61, 90, []callevent.Barrier{point(40), point(80)}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, b.concerning(nil, c.first, c.last))
		})
	}
}

func TestAKnownBarrierChangesNothing(t *testing.T) {
	var b barriers
	_, known := b.add(point(7))
	assert.False(t, known)
	_, known = b.add(point(7))
	assert.True(t, known)
	assert.Len(t, b.unannounced(nil), 1)
}

func TestBarriersAreAnnouncedUntilABatchWithThemWasAccepted(t *testing.T) {
	var b barriers
	b.add(point(7))
	first := b.unannounced(nil)
	b.add(point(9))
	b.announced(first)
	assert.True(t, b.haveNews())
	second := b.unannounced(nil)
	assert.Equal(t, []callevent.Barrier{point(9)}, second)
	b.announced(second)
	assert.False(t, b.haveNews())
	assert.Equal(t, []callevent.Barrier{point(9)}, b.unannounced(nil), "an empty batch carries the last one")
}

func TestTheOldestBarriersAreDroppedIfABatchCannotCarryAll(t *testing.T) {
	var b barriers
	dropped := 0
	for i := range callevent.MaxBarriers + 10 {
		d, _ := b.add(point(uint64(i)))
		dropped += d
	}
	assert.Equal(t, 10, dropped)
	assert.Len(t, b.concerning(nil, 0, 1<<40), callevent.MaxBarriers)
	assert.Len(t, b.unannounced(nil), callevent.MaxBarriers)
}
