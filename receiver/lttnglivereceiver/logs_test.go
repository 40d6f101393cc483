// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/lttng/mapping"
	"github.com/callbraid/callbraid/internal/lttng/process"
	"github.com/callbraid/callbraid/internal/lttng/sim/synthetic"
)

func TestNamesOfLoggersCountAsBytesOfABatch(t *testing.T) {
	s := synthetic.New("loggers")
	s.Class("lttng_jul:event", "msg$", "logger_name$", "int_loglevel")
	stream := s.Stream()
	const records = 4 * process.MaxLogBatchBytes / mapping.MaxNameBytes
	for i := range uint64(records) {
		stream.Packet(10*i+1).Event(10*i+2, "lttng_jul:event", "m", fmt.Sprintf("%08d%s", i, strings.Repeat("x", mapping.MaxNameBytes-8)), 800)
	}
	r := newRelay(t, []*lttnglive.Recording{s.Recording(1)}, lttnglive.RelayOptions{})
	b := newBed(t, reading(r.address()), withoutTraces, func(_ *bed, c *Config) { c.Batch.MaxDelay = time.Minute })
	b.awaitRecords(records)
	for _, logs := range b.logs.AllLogs() {
		assert.LessOrEqual(t, logs.LogRecordCount(), process.MaxLogBatchBytes/mapping.MaxNameBytes)
	}
}
