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
)

func TestNamesOfLoggersCountAsBytesOfABatch(t *testing.T) {
	s := newSynthetic("loggers")
	s.class("lttng_jul:event", "msg$", "logger_name$", "int_loglevel")
	stream := s.stream()
	const records = 4 * maxLogBatchBytes / maxNameBytes
	for i := range uint64(records) {
		stream.packet(10*i+1).event(10*i+2, "lttng_jul:event", "m", fmt.Sprintf("%08d%s", i, strings.Repeat("x", maxNameBytes-8)), 800)
	}
	r := newRelay(t, []*lttnglive.Recording{s.recording(1)}, lttnglive.RelayOptions{})
	b := newBed(t, reading(r.address()), withoutTraces, func(_ *bed, c *Config) { c.Batch.MaxDelay = time.Minute })
	b.awaitRecords(records)
	for _, logs := range b.logs.AllLogs() {
		assert.LessOrEqual(t, logs.LogRecordCount(), maxLogBatchBytes/maxNameBytes)
	}
}
