// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestOneThatIsAcceptedWakesAllThatWereRefused(t *testing.T) {
	b := backoff{retry: RetryConfig{InitialInterval: time.Hour, MaxInterval: time.Hour}}
	first, second := b.refused(), b.refused()
	assert.False(t, isClosed(first) || isClosed(second))
	b.accepted()
	assert.True(t, isClosed(first) && isClosed(second))
	// The next pause is another one.
	assert.False(t, isClosed(b.refused()))
}

func TestPausesBecomeLongerUntilSomethingIsAccepted(t *testing.T) {
	b := backoff{retry: RetryConfig{InitialInterval: 2 * time.Millisecond, MaxInterval: 5 * time.Millisecond}}
	for _, next := range []time.Duration{4, 5, 5} {
		again := b.refused()
		assert.Equal(t, next*time.Millisecond, b.next)
		assert.Equal(t, again, b.refused(), "all wait for the same")
		select {
		case <-again:
		case <-time.After(patience):
			t.Fatal("expected the pause to end")
		}
	}
	b.accepted()
	b.refused()
	assert.Equal(t, 4*time.Millisecond, b.next)
}
