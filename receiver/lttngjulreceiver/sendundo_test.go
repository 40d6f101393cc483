// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
	"github.com/callbraid/callbraid/internal/lttng/sim/logagent"
)

// Agents count how often a logger is enabled, and the count outlives a lost connection.
func TestALostAgentIsRestoredAfterItConnectsAgain(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the process of an agent is known only on Linux")
	}
	const times = 2
	cases := map[string]logagent.Fault{
		"it did not answer":                        {Kind: logagent.Mute},
		"it answered by half":                      {Kind: logagent.Stall},
		"it closed in the middle of a list":        {Kind: logagent.Die, After: 1},
		"it sent data without a command":           {Kind: logagent.Talk},
		"it sent a list with a name too many":      {Kind: logagent.WrongCount},
		"it sent a list of more than there can be": {Kind: logagent.HugeSize},
	}
	for name, fault := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, func(c *Config) {
				c.Enable = []EnableRule{{Domain: "jul", Logger: "*"}}
				// An agent that answers must not exceed it.
				c.CommandTimeout = 2 * time.Second
				c.ListInterval = 20 * time.Millisecond
			})
			fault.Times = times
			agents, _ := playAgents(t, logagent.Options{
				Address: b.address(), PID: uint32(os.Getpid()), Loggers: []string{"a"}, Retry: 5 * time.Millisecond, Fault: fault,
			})
			b.Await("it is back", func() bool {
				s := agents[0].Stats()
				return s.Connections == times+1 && s.Commands[lttngagent.CommandRegistrationDone] > 0 && agents[0].Enabled()["*"] > 0
			})
			b.Await("it is listed", func() bool { return b.point("lttng.logger.count", "jul") == 1 })
			b.Shutdown()
			assert.Empty(t, agents[0].Enabled())
		})
	}
}

// The agent may never connect to this receiver again.
func TestUndoCommandsAreSentBeforeTheReceiverCloses(t *testing.T) {
	b := newBed(t, twoRules)
	a := b.register(lttngagent.JUL)
	a.expect(
		enable(t, lttngagent.JUL, "com.example.*", "FINER"), enable(t, lttngagent.JUL, "org.other", ""),
		lttngagent.EnableContext{Context: contextOf(t, "shop", "user")}, lttngagent.RegistrationDone{},
	)
	require.Equal(t, lttngagent.List{}, a.next())
	a.send(append(words(1, 3, 1), "a\xff\x00"...))
	a.expect(
		lttngagent.DisableContext{Context: contextOf(t, "shop", "user")},
		lttngagent.Disable{Logger: pattern(t, "org.other")},
		lttngagent.Disable{Logger: pattern(t, "com.example.*")},
	)
	a.awaitClosed()
	b.awaitNothingHeld()
	b.expectUndo(lttngagent.JUL, 1, pattern(t, "com.example.*"), pattern(t, "org.other"))
}

// expectUndo registers an agent of this process, which carries out all commands, and expects that the shutdown disables
// each logger so many times.
func (b *bed) expectUndo(domain lttngagent.Domain, times int, loggers ...lttngagent.Pattern) {
	b.T.Helper()
	a := b.register(domain)
	for {
		command := a.next()
		if _, isList := command.(lttngagent.List); isList {
			break
		}
		if _, done := command.(lttngagent.RegistrationDone); !done {
			a.answer(lttngagent.Success)
		}
	}
	a.list()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		b.Shutdown()
	}()
	want, got := map[lttngagent.Pattern]int{}, map[lttngagent.Pattern]int{}
	for _, logger := range loggers {
		want[logger] = times
	}
	for _, command := range a.serve() {
		if disable, ok := command.(lttngagent.Disable); ok {
			got[disable.Logger]++
		}
	}
	<-stopped
	assert.Equal(b.T, want, got)
}

// Only Java's agents forget their commands when they close.
func TestAPythonAgentHasItsCommandsAfterItClosedItsConnection(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the process of an agent is known only on Linux")
	}
	for _, domain := range []lttngagent.Domain{lttngagent.JUL, lttngagent.Python} {
		t.Run(domain.String(), func(t *testing.T) {
			b := newBed(t, func(c *Config) {
				c.Enable = []EnableRule{{Domain: domain.String(), Logger: "*"}}
				c.ListInterval = time.Hour
			})
			a := b.register(domain)
			a.expect(enable(t, domain, "*", ""), lttngagent.RegistrationDone{}, lttngagent.List{})
			b.Await("its process is known", func() bool { return len(b.records(eventRegistered)) == 1 })
			require.NoError(t, a.conn.Close())
			b.awaitNothingHeld()
			times := map[lttngagent.Domain]int{lttngagent.JUL: 1, lttngagent.Python: 2}
			b.expectUndo(domain, times[domain], pattern(t, "*"))
		})
	}
}
