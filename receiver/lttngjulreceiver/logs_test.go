// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"strconv"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

func TestNamesInTheQueueHaveMemoryOfTheirOwn(t *testing.T) {
	list := "a long list of names"
	for _, names := range [][]string{{list[:1], list[2:6]}, {list[2:6]}, {list[2:6], ""}} {
		own := copyNames(names)
		assert.Equal(t, names, own)
		assert.NotSame(t, unsafe.StringData(names[0]), unsafe.StringData(own[0]))
	}
}

func TestEntriesOfALongListAreBounded(t *testing.T) {
	b := newBed(t, nil)
	names := make([]string, 2*maxLoggersOfEntry+1)
	for i := range names {
		names[i] = "logger " + strconv.Itoa(i)
	}
	a := b.register(lttngagent.JUL)
	a.expect(lttngagent.RegistrationDone{})
	require.Equal(t, lttngagent.List{}, a.next())
	a.list(names...)
	b.awaitRecords(eventAppeared, len(names))

	entry := logEntry{loggers: names[:maxLoggersOfEntry]}
	records, bytes := entry.size()
	assert.Equal(t, maxLoggersOfEntry, records)
	assert.Greater(t, bytes, maxLoggersOfEntry*(len("logger 1")+bytesOfLoggerRecord))
}

func TestLogRecordsThatAreSwitchedOffAreNotDelivered(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Events.LttngAgentRegistered.Enabled = false })
	a := b.register(lttngagent.JUL)
	a.expect(lttngagent.RegistrationDone{})
	require.Equal(t, lttngagent.List{}, a.next())
	a.list("com.example.db")
	b.awaitRecords(eventAppeared, 1)
	for _, r := range b.records("") {
		assert.NotEqual(t, eventRegistered, r.event)
	}
}
