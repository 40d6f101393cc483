// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/componentkit/backoff"
)

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestAnAcceptedBatchWakesAllRefusedOnes(t *testing.T) {
	p := newPause(backoff.Config{InitialInterval: time.Hour, MaxInterval: time.Hour})
	first, second := p.refused(), p.refused()
	assert.False(t, isClosed(first) || isClosed(second))
	p.accepted()
	assert.True(t, isClosed(first) && isClosed(second))
	// The next refusal begins a new pause.
	assert.False(t, isClosed(p.refused()))
	p.accepted()
}

func TestAllRefusedBatchesHaveOnePauseThatEnds(t *testing.T) {
	// The time does not pass between two refusals.
	synctest.Test(t, func(t *testing.T) {
		p := newPause(backoff.Config{InitialInterval: 2 * time.Millisecond, MaxInterval: 5 * time.Millisecond})
		for range 3 {
			again := p.refused()
			assert.Equal(t, again, p.refused(), "all have the same pause")
			select {
			case <-again:
			case <-time.After(patience):
				t.Fatal("expected the pause to end")
			}
		}
	})
}

func TestPausesBecomeLongerUntilSomethingIsAccepted(t *testing.T) {
	p := newPause(backoff.Config{InitialInterval: time.Nanosecond, MaxInterval: 10 * time.Hour})
	// A nanosecond that is doubled 45 times is more than an hour.
	for range 45 {
		p.refused()
		p.mu.Lock()
		p.timer.Stop()
		p.over = nil
		p.mu.Unlock()
	}
	assert.False(t, isClosed(p.refused()))
	p.accepted()
	select {
	case <-p.refused():
	case <-time.After(patience):
		t.Fatal("expected a pause as short as the first")
	}
}

// A timer can fire after its pause has ended early, during the next pause.
func TestAnEndedPauseDoesNotEndTheNext(t *testing.T) {
	p := newPause(backoff.Config{InitialInterval: time.Hour, MaxInterval: time.Hour})
	p.refused()
	old := p.over
	p.accepted()
	next := p.refused()
	p.mu.Lock()
	p.end(old)
	p.mu.Unlock()
	assert.False(t, isClosed(next))
	p.accepted()
	assert.True(t, isClosed(next))
}
