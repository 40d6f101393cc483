// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestATimedMutexIsWaitedForUntilItIsFreeOrTheTimeIsOver(t *testing.T) {
	const patience = 20 * time.Millisecond
	for _, c := range []struct {
		name   string
		held   time.Duration
		locks  bool
		waited time.Duration
	}{
		{"free", 0, true, 0},
		{"freed in time", 5 * time.Millisecond, true, 5 * time.Millisecond},
		{"freed too late", time.Second, false, patience},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newTimedMutex()
				if c.held > 0 {
					m.Lock()
					time.AfterFunc(c.held, m.Unlock)
				}
				begin := time.Now()
				require.Equal(t, c.locks, m.lockWithin(patience))
				assert.Equal(t, c.waited, time.Since(begin))
				if c.locks {
					m.Unlock()
				}
				synctest.Wait()
				time.Sleep(2 * time.Second)
				assert.True(t, m.lockWithin(patience), "the mutex is free in the end")
			})
		})
	}
}

func TestATimedMutexAdmitsOneCallerAtATime(t *testing.T) {
	m := newTimedMutex()
	const callers, rounds = 4, 2000
	n, expected := 0, 0
	var all sync.WaitGroup
	var mu sync.Mutex
	for caller := range 2 * callers {
		all.Go(func() {
			locked := 0
			for range rounds {
				if caller < callers {
					m.Lock()
				} else if !m.lockWithin(time.Minute) {
					continue
				}
				n++
				locked++
				m.Unlock()
			}
			mu.Lock()
			expected += locked
			mu.Unlock()
		})
	}
	all.Wait()
	assert.Equal(t, 2*callers*rounds, expected, "no caller waits for a minute")
	assert.Equal(t, expected, n)
}
