// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

func TestCommandsOfCancelledCallersAreRemoved(t *testing.T) {
	gone, giveUp := context.WithCancel(t.Context())
	var q commandQueue
	for range 100 {
		require.True(t, q.queue(queuedCommand{command: lttngagent.List{}, caller: gone}))
	}
	giveUp()
	next, over := q.next()
	assert.Nil(t, next.command)
	assert.False(t, over)
	for range 100 {
		q.queue(queuedCommand{command: lttngagent.List{}, caller: gone})
	}
	assert.Len(t, q.waiting, 1, "the next command removes the others")
}

func TestAClosedQueueAnswersItsCommands(t *testing.T) {
	var q commandQueue
	answered := make(chan Answer, 1)
	require.True(t, q.queue(queuedCommand{command: lttngagent.List{}, caller: t.Context(), answered: answered}))
	q.close()
	assert.Equal(t, Answer{Result: NoAnswer, Err: ErrNotSent}, <-answered)
	assert.False(t, q.queue(queuedCommand{command: lttngagent.List{}}))
	_, over := q.next()
	assert.True(t, over)
}
