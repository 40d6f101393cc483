// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSilenceIsShortOnlyForAnAgentThatWasSentSuspend(t *testing.T) {
	for name, c := range map[string]struct {
		how   manner
		short bool
	}{
		"the receiver leaves it":        {mannerSuspend, true},
		"the agent ends the run itself": {mannerNone, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := &run{env: &Environment{Timing: &Timing{Quiet: 2, Complete: 1}}, life: &lifetime{ending: Ending{how: c.how}}}
			times := (&farewell{run: r}).restTimes()
			assert.Equal(t, c.short, times.Complete < times.Quiet)
		})
	}
}
