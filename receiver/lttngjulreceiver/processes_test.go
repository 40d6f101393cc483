// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
	"github.com/callbraid/callbraid/internal/lttng/sim/logagent"
	"github.com/callbraid/callbraid/receiver/lttngjulreceiver/internal/process"
)

// holdLookups makes all later lookups of processes wait until release is called. The receiver has not started.
func (b *bed) holdLookups() (release func()) {
	held := make(chan struct{})
	b.receiver.finding = func(find findProcess) findProcess {
		return func(conn net.Conn, since time.Time, pid uint32, cancelled <-chan struct{}) (process.Process, bool) {
			select {
			case <-held:
				return find(conn, since, pid, cancelled)
			case <-cancelled:
				return process.Process{}, false
			}
		}
	}
	return func() { close(held) }
}

func TestAnApplicationDoesNotWaitForALookup(t *testing.T) {
	for name, code := range map[string]lttngagent.Code{"enabled": lttngagent.Success, "refused": lttngagent.Invalid} {
		t.Run(name, func(t *testing.T) {
			b := unstartedBed(t, func(c *Config) { c.Enable = []EnableRule{{Domain: "jul", Logger: "*"}} })
			release := b.holdLookups()
			b.Start()
			a := b.register(lttngagent.JUL)
			require.IsType(t, lttngagent.Enable{}, a.next())
			a.answer(code)
			require.Equal(t, lttngagent.RegistrationDone{}, a.next())
			assert.Empty(t, b.records(""), "the process is not known yet")
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

// The time of a record is the time of its event, not the end of the lookup.
func TestRecordsThatWaitForLookupsHaveTheTimeOfTheirEvents(t *testing.T) {
	b := unstartedBed(t, func(c *Config) { c.Enable = []EnableRule{{Domain: "jul", Logger: "*"}} })
	var hours atomic.Int64
	at := func(hour int64) time.Time { return time.Unix(0, 0).UTC().Add(time.Duration(hour) * time.Hour) }
	b.Kit().Now = func() time.Time { return at(hours.Load()) }
	release := b.holdLookups()
	b.Start()
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

// A shutdown restores agents first.
func TestAShutdownDoesNotWaitForLookups(t *testing.T) {
	b := unstartedBed(t, func(c *Config) { c.Enable = []EnableRule{{Domain: "jul", Logger: "*"}} })
	b.holdLookups()
	b.Start()
	options := make([]logagent.Options, 20)
	for i := range options {
		options[i] = logagent.Options{Address: b.address(), PID: uint32(os.Getpid()), Loggers: []string{"a"}}
	}
	agents, _ := playAgents(t, options...)
	b.Await("all applications continue", func() bool {
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
