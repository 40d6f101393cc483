// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestAConditionIsCheckedUntilItIsTrueOrThePatienceIsOver(t *testing.T) {
	for name, c := range map[string]struct {
		trueAfter, check time.Duration
		happens          bool
		// least and most bound the wait, mostChecks the number of checks.
		least, most time.Duration
		mostChecks  int
	}{
		"immediately":           {0, 0, true, 0, 0, 1},
		"soon":                  {20 * time.Millisecond, 0, true, 20 * time.Millisecond, 30 * time.Millisecond, 12},
		"late":                  {time.Minute, 0, true, time.Minute, time.Minute + longestPause, 6_010},
		"too late":              {time.Hour, 0, false, Patience, Patience + longestPause, 12_010},
		"checks that take long": {time.Second, 100 * time.Millisecond, true, time.Second, 2 * time.Second, 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, checks := time.Now(), 0
				assert.Equal(t, c.happens, Happens(func() bool {
					checks++
					at := time.Since(began)
					time.Sleep(c.check)
					return at >= c.trueAfter
				}))
				assert.GreaterOrEqual(t, time.Since(began), c.least)
				assert.LessOrEqual(t, time.Since(began), c.most)
				assert.LessOrEqual(t, checks, c.mostChecks)
			})
		})
	}
}

// A machine that stands still for an hour checks the condition again afterwards.
func TestTimeInWhichTheMachineStoodStillDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checks := 0
		assert.True(t, Happens(func() bool {
			if checks++; checks == 1 {
				time.Sleep(time.Hour)
			}
			return checks == 3
		}))
	})
}
