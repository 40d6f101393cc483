// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

func TestPendingUndoCommandsAreBounded(t *testing.T) {
	var l pendingUndo
	undo := make([]lttngagent.Command, maxUndo+1)
	for i := range undo {
		undo[i] = lttngagent.List{}
	}
	undo[0] = lttngagent.RegistrationDone{}
	l.add(life{pid: 1}, undo)
	assert.Empty(t, l.remove(life{pid: 1}), "the process is not known")
	assert.Empty(t, l.order)
	for pid := range uint32(maxPendingUndo + 1) {
		l.add(life{pid: pid, started: 1}, undo)
		l.add(life{pid: pid, started: 1}, undo)
	}
	assert.Len(t, l.commands, maxPendingUndo)
	assert.Len(t, l.order, maxPendingUndo)
	assert.Empty(t, l.remove(life{pid: 0, started: 1}), "the oldest is evicted")
	assert.Empty(t, l.remove(life{pid: 1, started: 2}), "another process")
	assert.True(t, l.has(0, 1))
	assert.False(t, l.has(lttngagent.JUL, 1))
	assert.Equal(t, undo[1:], l.remove(life{pid: 1, started: 1}))
	assert.False(t, l.has(0, 1))
	assert.Empty(t, l.remove(life{pid: 1, started: 1}), "it was removed")
	assert.Len(t, l.order, maxPendingUndo-1)
}
