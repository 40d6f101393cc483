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

// Agents count how often a logger is enabled.
func TestAnAgentThatConnectsAgainIsDisabledAsOftenAsItWasEnabled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the process of an agent is known only on Linux")
	}
	b := newBed(t, func(c *Config) {
		twoRules(c)
		c.ListInterval = time.Hour
	})
	firstCommands := []lttngagent.Command{
		enable(t, lttngagent.JUL, "com.example.*", "FINER"), enable(t, lttngagent.JUL, "org.other", ""),
		lttngagent.EnableContext{Context: contextOf(t, "shop", "user")}, lttngagent.RegistrationDone{}, lttngagent.List{},
	}
	for range 2 {
		a := b.register(lttngagent.JUL)
		a.expect(firstCommands...)
		a.send([]byte("unasked"))
		a.awaitClosed()
	}
	a := b.register(lttngagent.JUL)
	a.expect(firstCommands...)
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

// A Java agent that closes its connection has forgotten its commands, or its process has ended.
func TestAnAgentThatClosesItsConnectionIsDisabledOnce(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.Enable = []EnableRule{{Domain: "jul", Logger: "*"}}
		c.ListInterval = time.Hour
	})
	firstCommands := []lttngagent.Command{enable(t, lttngagent.JUL, "*", ""), lttngagent.RegistrationDone{}, lttngagent.List{}}
	a := b.register(lttngagent.JUL)
	a.expect(firstCommands...)
	require.NoError(t, a.conn.(*net.TCPConn).CloseWrite()) // the process still has the socket
	b.awaitRecords(eventGone, 1)
	a = b.register(lttngagent.JUL)
	a.expect(firstCommands...)
	go b.Shutdown()
	a.expect(lttngagent.Disable{Logger: pattern(t, "*")})
	a.awaitClosed()
}
