// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/hq"
)

func TestCommandsThatDoNotFitTheStateOfAnAgent(t *testing.T) {
	for _, test := range []struct {
		what  string
		state State
		unfit []string
	}{
		{"preparing", State{Agent: hq.Status{State: hq.Preparing}}, []string{Unpause, Unsuspend}},
		{"preparing, to be suspended", State{Agent: hq.Status{State: hq.Preparing, Reasons: hq.Operator}}, []string{Pause, Suspend, Unpause}},
		{"tracing", State{Mode: bytefrog.ModeTracing, Agent: hq.Status{State: hq.Tracing}}, []string{Unpause, Unsuspend}},
		{"paused", State{Mode: bytefrog.ModePaused, Agent: hq.Status{State: hq.Paused}}, []string{Pause, Unsuspend}},
		{"suspending", State{Agent: hq.Status{State: hq.Suspending, Reasons: hq.Operator}}, []string{Pause, Suspend, Unpause}},
		{"suspended", State{Agent: hq.Status{State: hq.Suspended, Reasons: hq.Operator, Broken: true}}, []string{Pause, Suspend, Unpause}},
		{"suspended by an overload", State{Agent: hq.Status{State: hq.Suspended, Reasons: hq.Overload}}, []string{Pause, Unpause}},
		{"ended", State{Agent: hq.Status{State: hq.Ended}}, []string{Pause, Stop, Suspend, Unpause, Unsuspend}},
		{"leaving", State{Leaving: true, Agent: hq.Status{State: hq.Tracing}}, []string{Pause, Stop, Suspend, Unpause, Unsuspend}},
		{"shutting down", State{Mode: bytefrog.ModeShuttingDown, Agent: hq.Status{State: hq.Tracing}}, []string{Pause, Stop, Suspend, Unpause, Unsuspend}},
	} {
		t.Run(test.what, func(t *testing.T) {
			assert.Equal(t, test.unfit, slices.Sorted(maps.Keys(test.state.Unfit())))
		})
	}
}
