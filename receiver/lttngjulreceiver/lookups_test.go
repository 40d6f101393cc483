// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
	"github.com/callbraid/callbraid/internal/lttng/sim/logagent"
)

// holdLookups has all look-ups of processes wait until the function that it gives is
// called.
func (b *bed) holdLookups() (release func()) {
	for range maxLookups {
		b.receiver.env.lookups.slots <- struct{}{}
	}
	return func() {
		for range maxLookups {
			<-b.receiver.env.lookups.slots
		}
	}
}

func TestAnApplicationDoesNotWaitForALookup(t *testing.T) {
	for name, code := range map[string]lttngagent.Code{"enabled": lttngagent.Success, "refused": lttngagent.Invalid} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, func(c *Config) { c.Enable = []EnableRule{{Domain: "jul", Logger: "*"}} })
			release := b.holdLookups()
			a := b.register(lttngagent.JUL)
			require.IsType(t, lttngagent.Enable{}, a.next())
			a.answer(code)
			require.Equal(t, lttngagent.RegistrationDone{}, a.next())
			assert.Empty(t, b.records(""), "it is not known yet whose they are")
			release()
			require.Equal(t, lttngagent.List{}, a.next())
			a.list()
			b.awaitRecords(eventRegistered, 1)
			if code != lttngagent.Success {
				b.awaitRecords(eventRefused, 1)
			}
			assert.Equal(t, eventRegistered, b.records("")[0].event)
		})
	}
}

// TestRecordsThatWaitForLookupsHaveTheTimeOfWhatTheyTell: not that at which it became known
// whose they are.
func TestRecordsThatWaitForLookupsHaveTheTimeOfWhatTheyTell(t *testing.T) {
	b := unstartedBed(t, func(c *Config) { c.Enable = []EnableRule{{Domain: "jul", Logger: "*"}} })
	var hours atomic.Int64
	at := func(hour int64) time.Time { return time.Unix(0, 0).UTC().Add(time.Duration(hour) * time.Hour) }
	b.Kit().Now = func() time.Time { return at(hours.Load()) }
	b.Start()
	release := b.holdLookups()
	a := b.register(lttngagent.JUL)
	require.IsType(t, lttngagent.Enable{}, a.next())
	hours.Store(1)
	a.answer(lttngagent.Invalid)
	require.Equal(t, lttngagent.RegistrationDone{}, a.next())
	hours.Store(2)
	release()
	require.Equal(t, lttngagent.List{}, a.next())
	a.list("a")
	assert.Equal(t, at(0), b.awaitRecords(eventRegistered, 1)[0].time)
	assert.Equal(t, at(1), b.awaitRecords(eventRefused, 1)[0].time)
	assert.Equal(t, at(2), b.awaitRecords(eventAppeared, 1)[0].time)
}

// TestAShutdownDoesNotWaitForLookups: agents are left as they were first.
func TestAShutdownDoesNotWaitForLookups(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Enable = []EnableRule{{Domain: "jul", Logger: "*"}} })
	b.holdLookups()
	options := make([]logagent.Options, 20)
	for i := range options {
		options[i] = logagent.Options{Address: b.address(), PID: uint32(os.Getpid()), Loggers: []string{"a"}}
	}
	agents, _ := playAgents(t, options...)
	b.Await("all are let go on", func() bool {
		for _, a := range agents {
			if a.Stats().Commands[lttngagent.CommandRegistrationDone] == 0 {
				return false
			}
		}
		return true
	})
	b.Shutdown()
	for _, a := range agents {
		assert.Empty(t, a.Enabled())
	}
	b.awaitRecords(eventRegistered, len(agents))
	for _, gone := range b.awaitRecords(eventGone, len(agents)) {
		assert.Equal(t, plog.SeverityNumberInfo, gone.severity, gone.body)
	}
}

func TestTwoLookupsRunAtTheSameTime(t *testing.T) {
	l := newLookups(true)
	for range 2 {
		l.slots <- struct{}{}
	}
	select {
	case l.slots <- struct{}{}:
		assert.Fail(t, "a third has a turn")
	default:
	}
}

func TestALookupThatWasGivenUpHasNotRun(t *testing.T) {
	c, _ := idleConversation(t)
	givenUp := make(chan struct{})
	close(givenUp)
	_, looked := newLookups(true).processOf(c, 1, givenUp)
	assert.False(t, looked)
	_, looked = newLookups(true).processOf(c, 1, nil)
	assert.True(t, looked)
}

func TestSightingsAreBounded(t *testing.T) {
	l := newLookups(true)
	for pid := range uint32(maxSightings + 1) {
		l.remember(pid, &processSockets{})
		l.remember(pid, &processSockets{})
	}
	assert.Len(t, l.sockets, maxSightings)
	assert.Len(t, l.order, maxSightings)
	assert.Nil(t, l.sockets[0], "the oldest is forgotten")
}
