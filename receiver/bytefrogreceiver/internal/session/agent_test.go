// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/bytefrog"
)

func TestAHeartbeatAllocatesNothing(t *testing.T) {
	run := startedRun(t, consumertest.NewNop())
	assert.Zero(t, testing.AllocsPerRun(100, func() { run.agent.Heartbeat(bytefrog.ModeTracing) }))
}

// The end of a run resumes a paused program. A command that waits for that must not take it for success.
func TestAnOrderThatWaitsEndsWithTheRun(t *testing.T) {
	run := startedRun(t, consumertest.NewNop())
	run.life.leave(ShuttingDown())
	err := (&commands{run: run}).await(t.Context(), notConfirmed+"resumed the program", func() bool { return true })
	require.Error(t, err)
	assert.Equal(t, agentcontrol.Lost, agentcontrol.ReasonOf(err))
}
