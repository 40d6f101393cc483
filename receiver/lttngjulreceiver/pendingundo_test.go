// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"net"
	"runtime"
	"testing"
	"time"

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
