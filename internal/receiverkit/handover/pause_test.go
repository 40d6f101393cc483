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

func TestOneThatIsAcceptedWakesAllThatWereRefused(t *testing.T) {
	p := newPause(backoff.Config{InitialInterval: time.Hour, MaxInterval: time.Hour})
	first, second := p.refused(), p.refused()
	assert.False(t, isClosed(first) || isClosed(second))
	p.accepted()
	assert.True(t, isClosed(first) && isClosed(second))
	// The next pause is another one.
	assert.False(t, isClosed(p.refused()))
	p.accepted()
}

func TestAPauseIsOneForAllAndEnds(t *testing.T) {
	// Time stands still between those who are refused.
	synctest.Test(t, func(t *testing.T) {
		p := newPause(backoff.Config{InitialInterval: 2 * time.Millisecond, MaxInterval: 5 * time.Millisecond})
		for range 3 {
			again := p.refused()
			assert.Equal(t, again, p.refused(), "all wait for the same")
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
	// So many times doubled, a nanosecond is more than an hour.
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

// A timer that has fired can come when its pause is over already, and another goes on.
func TestAPauseThatIsOverEndsNoOther(t *testing.T) {
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
