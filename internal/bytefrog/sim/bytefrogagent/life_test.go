// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogagent

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

// Steps of an agent's life, in the order of the Java agent.
func starts(l *life) { l.start() }
func makesBuffers(l *life) {
	l.start()
	l.prepared()
}

func listens(l *life) {
	makesBuffers(l)
	l.listens()
}

// Orders of the HQ.
func suspends(l *life)   { l.suspend() }
func unsuspends(l *life) { l.unsuspend() }
func pauses(l *life)     { l.pause() }
func unpauses(l *life)   { l.unpause() }

// The cases were observed with the Java agent.
func TestTheEffectOfAnOrderDependsOnTheStepOfTheAgent(t *testing.T) {
	for name, c := range map[string]struct {
		steps []func(l *life)
		mode  bytefrog.Mode
		flows bool
	}{
		"suspend before start shows suspended, but events flow":    {[]func(*life){suspends, listens}, bytefrog.ModeSuspended, true},
		"suspend at the first data connection does the same":       {[]func(*life){makesBuffers, suspends, listens}, bytefrog.ModeSuspended, true},
		"suspend before start, and later again, ends tracing":      {[]func(*life){suspends, listens, suspends}, bytefrog.ModeShuttingDown, false},
		"suspend, unsuspend and suspend again holds events back":   {[]func(*life){suspends, listens, unsuspends, suspends}, bytefrog.ModeSuspended, false},
		"suspend and unsuspend before start have no effect":        {[]func(*life){suspends, unsuspends, listens}, bytefrog.ModeTracing, true},
		"suspend when its buffers listen holds events back":        {[]func(*life){listens, suspends}, bytefrog.ModeSuspended, false},
		"suspend twice ends tracing":                               {[]func(*life){listens, suspends, suspends}, bytefrog.ModeShuttingDown, false},
		"unsuspend of an agent that is not suspended ends tracing": {[]func(*life){listens, unsuspends}, bytefrog.ModeShuttingDown, false},
		"suspend while the program is paused ends tracing":         {[]func(*life){listens, pauses, suspends}, bytefrog.ModeShuttingDown, false},
		"pause while it is suspended ends tracing":                 {[]func(*life){listens, suspends, pauses}, bytefrog.ModeShuttingDown, false},
		"unpause of a program that is not paused ends tracing":     {[]func(*life){listens, unpauses}, bytefrog.ModeShuttingDown, false},
		"pause and unpause": {[]func(*life){listens, pauses, unpauses}, bytefrog.ModeTracing, true},
		"suspend before it has its buffers hangs the program in the end": {[]func(*life){starts, suspends}, bytefrog.ModeShuttingDown, false},
	} {
		t.Run(name, func(t *testing.T) {
			var l life
			for _, step := range c.steps {
				step(&l)
			}
			assert.Equal(t, c.mode, l.mode())
			assert.Equal(t, c.flows, l.collecting())
		})
	}
}
