// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/lttng/mapping"
	"github.com/callbraid/callbraid/internal/lttng/session"
	"github.com/callbraid/callbraid/internal/lttng/sim/synthetic"
)

func TestMessagesAndNamesThatAreTooLongAreTruncated(t *testing.T) {
	for _, most := range []int{session.MinLogRecordBytes, mib} {
		t.Run(strconv.Itoa(most), func(t *testing.T) { requireCut(t, most) })
	}
}

func requireCut(t *testing.T, most int) {
	s := synthetic.New("long")
	s.Class("lttng_log4j:event", "msg$", "logger_name$", "method_name$", "filename$", "thread_name$")
	long := strings.Repeat("x", mapping.MaxNameBytes+1)
	s.Stream().Packet(1).Event(1, "lttng_log4j:event", strings.Repeat("m", most+1), long, long, long, long)
	b := served(t, []*synthetic.Session{s}, func(_ *bed, c *Config) { c.Limits.MaxLogRecordBytes = most })
	records := b.records()
	assert.Len(t, records, 1)
	assert.Less(t, len(records[0].Body().Str()), most)
	assert.Greater(t, len(records[0].Body().Str()), most/2)
	assert.Len(t, records[0].scope, mapping.MaxNameBytes)
	for key, value := range records[0].Attributes().All() {
		assert.Len(t, value.Str(), mapping.MaxNameBytes, key)
	}
	assert.EqualValues(t, 4, records[0].DroppedAttributesCount(), "the body, and three of the attributes")
	assert.EqualValues(t, 5, b.metric("receiver_lttng_live_log_values_left_out"), "and the name of the logger")
}
