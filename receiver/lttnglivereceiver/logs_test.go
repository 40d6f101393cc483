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

// Java's modified UTF-8 has two surrogates of three bytes each for a character above U+FFFF, and two bytes for NUL.
func TestTextsOfJavaLoggersAreDecoded(t *testing.T) {
	const smiling, frowning = "\xED\xA0\xBD\xED\xB8\x80", "\xED\xA0\xBD\xED\xB8\x9F"
	s := synthetic.New("java")
	s.Class("lttng_jul:event", "msg$", "logger_name$", "class_name$", "method_name$", "int_loglevel")
	s.Class("app:event", "msg$")
	stream := s.Stream()
	p := stream.Packet(1)
	p.Event(2, "lttng_jul:event", "a\xC0\x80b"+smiling, "shop."+smiling, "Shop"+smiling, "buy", 800)
	p.Event(3, "lttng_jul:event", "h\xC3\xA9 "+smiling[:3], "shop."+frowning, "Shop", "buy", 800)
	p.Event(4, "app:event", smiling)
	r := newRelay(t, []*lttnglive.Recording{s.Recording(1)}, lttnglive.RelayOptions{})
	b := newBed(t, reading(r.address()), withoutTraces)
	b.awaitRecords(3)
	got := map[string][]string{}
	for _, logs := range b.logs.AllLogs() {
		for _, resource := range logs.ResourceLogs().All() {
			for _, scope := range resource.ScopeLogs().All() {
				for _, record := range scope.LogRecords().All() {
					of := scope.Scope().Name()
					got[of] = append(got[of], record.Body().AsString(), textOf(record.Attributes(), "code.function.name"), textOf(record.Attributes(), "msg"))
				}
			}
		}
	}
	assert.Equal(t, []string{"a\x00b\U0001F600", "Shop\U0001F600.buy", ""}, got["shop.\U0001F600"])
	assert.Equal(t, []string{"h\u00E9 \uFFFD", "Shop.buy", ""}, got["shop.\U0001F61F"])
	assert.Contains(t, got, "github.com/callbraid/callbraid/receiver/lttnglivereceiver")
	assert.Equal(t, []string{"app:event", "", "\uFFFD"}, got["github.com/callbraid/callbraid/receiver/lttnglivereceiver"], "only Java writes modified UTF-8")
}

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
