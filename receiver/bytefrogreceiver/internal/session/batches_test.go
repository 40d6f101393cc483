// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/runmemory"
)

func TestTheReasonOfAFullMemoryIsItsFirst(t *testing.T) {
	m := limitedMemory(1000)
	assert.False(t, m.Require(1001))
	m.Fill(&budget.Error{Setting: budget.Setting})
	assert.Equal(t, "max_run_memory", memoryReason(m))
	assert.False(t, m.Reserve(1), "a full memory reserves nothing")
	other := limitedMemory(1000)
	assert.False(t, other.Reserve(1001))
	assert.False(t, other.IsFull(), "a run can go on without reserved memory")
	other.Fill(&budget.Error{Setting: budget.Setting})
	assert.Equal(t, handover.DroppedMemory, memoryReason(other))
}

// Without room for a held batch, the program waits.
func TestNoRunIsDisconnectedForAHeldBatch(t *testing.T) {
	process := budget.New(2 << 20)
	group := process.Group("bytefrog")
	run, other := runmemory.New(group, 16<<20, nil), runmemory.New(group, 16<<20, nil)
	defer run.Close()
	defer other.Close()
	require.True(t, other.Require(1<<20))
	assert.True(t, heldMemory{run}.Reserve(512<<10))
	assert.False(t, heldMemory{run}.Reserve(1<<20))
	assert.EqualValues(t, 512<<10, run.Bounded())
	assert.False(t, run.IsFull())
	assert.False(t, other.IsFull())
}

// limitedMemory returns the memory of a run in a process with much memory.
func limitedMemory(limit int) *runmemory.Memory {
	return runmemory.New(budget.New(1<<40).Group("test"), limit, errors.New("the limit of the run"))
}
