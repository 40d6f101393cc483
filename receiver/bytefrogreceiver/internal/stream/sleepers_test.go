// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

func TestANewNameWakesOnlyOtherConnectionsWithEventsThatWait(t *testing.T) {
	s, now := newPackedStream(), time.Unix(1000, 0)
	waiting, without, names := newPackedOf(t, s), newPackedOf(t, s), newPackedOf(t, s)
	_, err := waiting.Pack([]bytefrog.Event{{Type: bytefrog.TypeMethodEntry, Method: 1}}, now)
	require.NoError(t, err)
	for _, p := range []*packed{waiting, without, names} {
		p.Wake(now)
	}
	names.nameAt(0, 0, "worker", now)
	assert.EqualValues(t, 1, waiting.woken.Load())
	names.nameAt(9, 0, "another", now)
	assert.EqualValues(t, 1, waiting.woken.Load(), "it is awake")
	waiting.Wake(now)
	names.nameAt(9, 0, "another", now)
	assert.EqualValues(t, 1, waiting.woken.Load(), "the name is known")
	waiting.nameAt(8, 0, "its own", now)
	assert.EqualValues(t, 1, waiting.woken.Load())
	assert.Zero(t, without.woken.Load()+names.woken.Load())
	waiting.Settle(now)
	names.nameAt(10, 0, "late", now)
	assert.EqualValues(t, 1, waiting.woken.Load(), "no event waits")
}

// A name that arrives before a connection sleeps, or while it falls asleep, wakes it or makes it try again soon.
func TestNoWakeUpIsLost(t *testing.T) {
	s, start := newPackedStream(), time.Unix(1000, 0)
	waiting, names := newPackedOf(t, s), newPackedOf(t, s)
	_, err := waiting.Pack([]bytefrog.Event{{Type: bytefrog.TypeMethodEntry, Method: 1}}, start)
	require.NoError(t, err)
	for i := range uint16(2000) {
		now := start.Add(time.Duration(i+1) * 2 * RetryPause)
		waiting.pending.events[0].since = now
		waiting.Attend(now)
		woken := waiting.woken.Load()
		named := make(chan struct{})
		go func() {
			defer close(named)
			names.nameAt(i, 0, "a", now)
		}()
		if i%2 == 0 {
			<-named
		}
		wake := waiting.Wake(now)
		<-named
		soon := !wake.After(now.Add(RetryPause))
		require.True(t, soon || waiting.woken.Load() > woken, "round %d", i)
	}
}
