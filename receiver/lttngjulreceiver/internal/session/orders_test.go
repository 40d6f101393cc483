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

func TestOrdersOfCancelledCallersAreRemoved(t *testing.T) {
	gone, giveUp := context.WithCancel(t.Context())
	var o orders
	for range 100 {
		require.True(t, o.queue(order{command: lttngagent.List{}, caller: gone}))
	}
	giveUp()
	next, over := o.next()
	assert.Nil(t, next.command)
	assert.False(t, over)
	for range 100 {
		o.queue(order{command: lttngagent.List{}, caller: gone})
	}
	assert.Len(t, o.waiting, 1, "the next order removes the others")
}

func TestClosedOrdersAreAnswered(t *testing.T) {
	var o orders
	answered := make(chan Answer, 1)
	require.True(t, o.queue(order{command: lttngagent.List{}, caller: t.Context(), answered: answered}))
	o.close()
	assert.Equal(t, Answer{Result: NoAnswer, Err: ErrNotSent}, <-answered)
	assert.False(t, o.queue(order{command: lttngagent.List{}}))
	_, over := o.next()
	assert.True(t, over)
}
