// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

// TestAnAgentThatConnectsAgainIsDisabledAsOftenAsItWasEnabled: agents count.
func TestAnAgentThatConnectsAgainIsDisabledAsOftenAsItWasEnabled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("whose an agent is, is found out on Linux only")
	}
	b := newBed(t, func(c *Config) {
		twoRules(c)
		c.ListInterval = time.Hour
	})
	toldFirst := []lttngagent.Command{
		enable(t, lttngagent.JUL, "com.example.*", "FINER"), enable(t, lttngagent.JUL, "org.other", ""),
		lttngagent.EnableContext{Context: contextOf(t, "shop", "user")}, lttngagent.RegistrationDone{}, lttngagent.List{},
	}
	for range 2 {
		a := b.register(lttngagent.JUL)
		a.expect(toldFirst...)
		a.send([]byte("unasked"))
		a.awaitClosed()
	}
	a := b.register(lttngagent.JUL)
	a.expect(toldFirst...)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		b.Shutdown()
	}()
	for range 3 {
		a.expect(
			lttngagent.DisableContext{Context: contextOf(t, "shop", "user")},
			lttngagent.Disable{Logger: pattern(t, "org.other")},
			lttngagent.Disable{Logger: pattern(t, "com.example.*")},
		)
	}
	a.awaitClosed()
	<-stopped
}

// TestAnAgentThatClosesByItselfIsDisabledOnce: its process has ended, or it forgot what it
// was told.
func TestAnAgentThatClosesByItselfIsDisabledOnce(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.Enable = []EnableRule{{Domain: "jul", Logger: "*"}}
		c.ListInterval = time.Hour
	})
	toldFirst := []lttngagent.Command{enable(t, lttngagent.JUL, "*", ""), lttngagent.RegistrationDone{}, lttngagent.List{}}
	a := b.register(lttngagent.JUL)
	a.expect(toldFirst...)
	require.NoError(t, a.conn.(*net.TCPConn).CloseWrite()) // so that the process still has it
	b.awaitRecords(eventGone, 1)
	a = b.register(lttngagent.JUL)
	a.expect(toldFirst...)
	go b.Shutdown()
	a.expect(lttngagent.Disable{Logger: pattern(t, "*")})
	a.awaitClosed()
}

func TestPendingUndoCommandsAreBounded(t *testing.T) {
	var l pendingUndo
	undo := make([]lttngagent.Command, maxUndo+1)
	for i := range undo {
		undo[i] = lttngagent.List{}
	}
	undo[0] = lttngagent.RegistrationDone{}
	l.put(life{pid: 1}, undo)
	assert.Empty(t, l.remove(life{pid: 1}), "it is not known whose it is")
	assert.Empty(t, l.order)
	for pid := range uint32(maxPendingUndo + 1) {
		l.put(life{pid: pid, started: 1}, undo)
		l.put(life{pid: pid, started: 1}, undo)
	}
	assert.Len(t, l.commands, maxPendingUndo)
	assert.Len(t, l.order, maxPendingUndo)
	assert.Empty(t, l.remove(life{pid: 0, started: 1}), "the oldest is forgotten")
	assert.Empty(t, l.remove(life{pid: 1, started: 2}), "another process")
	assert.True(t, l.has(0, 1))
	assert.False(t, l.has(lttngagent.JUL, 1))
	assert.Equal(t, undo[1:], l.remove(life{pid: 1, started: 1}))
	assert.False(t, l.has(0, 1))
	assert.Empty(t, l.remove(life{pid: 1, started: 1}), "once")
	assert.Len(t, l.order, maxPendingUndo-1)
}
