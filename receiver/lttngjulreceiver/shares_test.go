// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/receivertestbed"
)

// While the pipeline refuses, an agent with new loggers in each list leaves room for records of other agents.
func TestOneAgentCannotFillTheQueue(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.ListInterval = 10 * time.Millisecond
		c.Limits.MaxQueuedLogs = 800
	})
	b.Logs.RefuseWith(receivertestbed.ErrRefused)
	changing := b.register(lttngagent.JUL)
	changing.expect(lttngagent.RegistrationDone{})
	lists := 0
	list := func() {
		require.Equal(t, lttngagent.List{}, changing.next())
		names := make([]string, 30)
		for i := range names {
			names[i] = fmt.Sprintf("list %d, logger %d", lists, i)
		}
		lists++
		changing.list(names...)
	}
	for b.Counter("log_records_dropped") < 800 {
		list()
	}
	assert.Len(t, b.Log.FilterMessageSnippet("Log records of loggers are dropped").All(), 1)

	other := b.register(lttngagent.Python)
	other.expect(lttngagent.RegistrationDone{})
	require.Equal(t, lttngagent.List{}, other.next())
	other.list("of the other agent")
	b.Await("the other agent is listed", func() bool { return b.point("lttng.logger.count", "python") == 1 })
	b.Logs.RefuseWith(nil)
	b.Await("its logger is recorded", func() bool {
		for _, r := range b.records(eventAppeared) {
			if r.attributes[attributeLogger] == "of the other agent" {
				return true
			}
		}
		return false
	})
	b.awaitRecords(eventRegistered, 2)
	// The waiting records were delivered, so there is room again.
	seen := len(b.records(""))
	list()
	b.Await("the next list is recorded", func() bool { return len(b.records("")) >= seen+60 })
}

func TestTheLoggersOfAllAgentsLeaveAQuarterOfTheQueue(t *testing.T) {
	s := newShares(&LimitsConfig{LogLimits: receiverkit.LogLimits{MaxQueuedLogs: 80, MaxQueuedLogBytes: 1 << 20}})
	entries := make([]*logEntry, 8)
	taken := 0
	for i := range entries {
		entries[i] = &logEntry{origin: &origin{}, loggers: make([]string, 10)}
		if s.reserve(entries[i]) {
			taken++
		}
	}
	assert.Equal(t, 6, taken, "of 80 records 60")
	assert.False(t, s.reserve(&logEntry{origin: entries[0].origin, loggers: make([]string, 1)}), "of an agent an eighth")
	assert.True(t, s.reserve(&logEntry{origin: &origin{}}), "all others always")
	for _, entry := range entries[:taken] {
		s.release(entry)
		assert.Zero(t, entry.waiting)
	}
	assert.Zero(t, s.used)
	large := &logEntry{origin: &origin{}, loggers: make([]string, 1000)}
	assert.True(t, s.reserve(large), "one that is larger, where there is nothing else")
	assert.False(t, s.reserve(large))
}

func TestARefusedEntryUsesNoShare(t *testing.T) {
	b := newBed(t, nil)
	b.Shutdown()
	sink, entry := b.receiver.env.logs, logEntry{origin: &origin{}, loggers: []string{"a"}}
	sink.Deliver(entry) // it is closed
	assert.EqualValues(t, 1, b.Counter("log_records_dropped"))
	assert.Zero(t, sink.shares.used)
	assert.Zero(t, entry.waiting)
}
