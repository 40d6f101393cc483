// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// held returns a row of an attack within all bounds.
func held() *row {
	r := &row{
		before: 50 << 20, peak: 500 << 20, after: 100 << 20, recovered: time.Second, calls: 10, delivered: 10, started: 3, traced: 3,
		asked: 5, answered: 5, logLines: 1, logBytes: 1000, longestLine: 400, ended: time.Second,
	}
	r.name = "something"
	return r
}

func TestARowBreaksABound(t *testing.T) {
	require.Empty(t, held().broken())
	for _, test := range []struct {
		name    string
		change  func(r *row)
		verdict string
	}{
		{"the process died", func(r *row) { r.died = "exit status 2" }, "the collector died: exit status 2"},
		{"too much memory", func(r *row) { r.peak = 700 << 20 }, "peak memory of 700 MiB, allowed are 600"},
		{"memory that stays", func(r *row) { r.after = 400 << 20 }, "memory 350 MiB above that before, allowed are 300"},
		{"no new agent is served afterwards", func(r *row) { r.recovered = -1 }, "not as before within 30s"},
		{"a call that is missing", func(r *row) { r.delivered = 9 }, "9 of 10 calls of honest programs delivered"},
		{"a call that arrived twice", func(r *row) { r.delivered = 11 }, "11 of 10 calls of honest programs delivered"},
		{"an agent that was not traced", func(r *row) { r.traced = 2 }, "2 of 3 agents that started were traced"},
		{"a page that did not answer", func(r *row) { r.answered = 4 }, "4 of 5 honest requests were answered"},
		{"a program that hangs", func(r *row) { r.harmed = []string{"hung"} }, "programs came to harm: hung"},
		{"a program that hangs at SIGTERM", func(r *row) { r.terminate, r.harmed = 0.5, []string{"hung"} }, "programs came to harm: hung"},
		{"a slow end", func(r *row) { r.ended = 11 * time.Second }, "ended 11s after SIGTERM, allowed are 10s"},
		{"many lines of log", func(r *row) { r.logLines = 51 }, "51 lines of log a second, allowed are 50"},
		{"much log", func(r *row) { r.logBytes = 33 << 10 }, "33 KiB of log a second, allowed are 32"},
		{"a long line of log", func(r *row) { r.longestLine = 9000 }, "a line of log of 9000 bytes, allowed are 8192"},
		{"an additional check of a scenario", func(r *row) { r.wrong = []string{"a new service is not shown"} }, "a new service is not shown"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := held()
			test.change(r)
			assert.Equal(t, []string{test.verdict}, r.broken())
			assert.Contains(t, r.String(), "**"+test.verdict+"**")
		})
	}
}

func TestALogIsMeasuredOverAtLeastFiveSeconds(t *testing.T) {
	text := strings.Repeat("1234\n", 100) + "123456789\n"
	for _, test := range []struct {
		after        time.Duration
		lines, bytes float64
	}{{time.Second, 20.2, 102}, {101 * time.Second, 1, 510.0 / 101}} {
		var r row
		r.readLog(text, test.after)
		assert.InDelta(t, test.lines, r.logLines, 1e-9)
		assert.InDelta(t, test.bytes, r.logBytes, 1e-9)
		assert.Equal(t, 10, r.longestLine)
	}
}

func TestEveryBoundBelongsToAScenario(t *testing.T) {
	names := map[string]bool{}
	for _, s := range scenarios() {
		assert.False(t, names[s.name], "two scenarios are called %q", s.name)
		names[s.name] = true
	}
	for name := range bounds {
		assert.True(t, names[name], "no scenario is called %q", name)
	}
}
