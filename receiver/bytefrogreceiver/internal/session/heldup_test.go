// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestAnAgentRecoversForNameWaitAfterALongHoldUp(t *testing.T) {
	const wait = time.Second
	start := time.Unix(1_700_000_000, 0)
	for _, c := range []struct {
		name                 string
		began, ended         time.Duration // of the hold-up
		asked, now           time.Duration
		expectedToRecoverNow bool
	}{
		{"the hold-up ended just now", 0, leastHoldUp, 0, leastHoldUp, true},
		{"the hold-up was too short to hold up the agent", 0, leastHoldUp - 1, 0, leastHoldUp, false},
		{"name_wait has passed since the hold-up", 0, wait, 0, 2 * wait, false},
		{"the agent is held up again and again, for a while", 8 * wait, 9 * wait, 0, maxRecovery*wait - 1, true},
		{"the agent is held up again and again, for too long", 9 * wait, maxRecovery * wait, 0, maxRecovery * wait, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := holdUp{nameWait: wait}
			h.ended(start.Add(c.began), start.Add(c.ended))
			assert.Equal(t, c.expectedToRecoverNow, start.Add(c.now).Before(h.recovered(start.Add(c.asked))))
		})
	}
}
