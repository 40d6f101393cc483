// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"fmt"
	"strings"
	"time"
)

// row has the measurements of an attack. Memory is in bytes.
type row struct {
	scenario
	sent []string
	// before is the memory before the attack. after is the least memory from 20 to 30 s after it, or in the
	// short form the memory when the collector has recovered.
	before, peak, after int64
	// recovered is the time from the end of the attack until a new agent was served and memory was
	// down. A negative value means: not within the bound.
	recovered time.Duration
	// calls is the number of calls of honest programs, and delivered those that the backend
	// received. started is the number of agents that started during the attack, and traced those
	// that were traced to their end. slowest is the time of the slowest agent.
	calls, delivered int64
	started, traced  int
	slowest          time.Duration
	harmed           []string
	// asked is the number of requests of honest clients for pages and over OTLP, and answered those
	// that were answered.
	asked, answered int64
	slowestAnswer   time.Duration
	// logLines and logBytes are per second, and longestLine is in bytes.
	logLines, logBytes float64
	longestLine        int
	counters           []string
	// ended is the time from SIGTERM to the end of the process.
	ended time.Duration
	// died describes how the process ended by itself; empty: it did not.
	died string
	// notes are other observations, and wrong has the violated bounds.
	notes, wrong []string
}

// broken describes the exceeded bounds.
func (r *row) broken() (all []string) {
	b := boundOf(r.name)
	if r.died != "" {
		return []string{"the collector died: " + r.died}
	}
	note := func(broken bool, format string, arguments ...any) {
		if broken {
			all = append(all, fmt.Sprintf(format, arguments...))
		}
	}
	note(r.peak>>20 > b.peak, "peak memory of %d MiB, allowed are %d", r.peak>>20, b.peak)
	note(r.ended > b.ends, "ended %v after SIGTERM, allowed are %v", r.ended.Round(time.Second), b.ends)
	if r.terminate == 0 {
		note((r.after-r.before)>>20 > b.leftover, "memory %d MiB above that before, allowed are %d", (r.after-r.before)>>20, b.leftover)
		note(r.recovered < 0, "not as before within %v", b.recovers)
		note(r.delivered != r.calls, "%d of %d calls of honest programs delivered", r.delivered, r.calls)
		note(r.traced != r.started, "%d of %d agents that started were traced", r.traced, r.started)
		note(r.answered != r.asked, "%d of %d honest requests were answered", r.answered, r.asked)
	}
	note(len(r.harmed) > 0, "programs came to harm: %s", strings.Join(r.harmed[:min(3, len(r.harmed))], "; "))
	note(r.logLines > b.logLines, "%.0f lines of log a second, allowed are %.0f", r.logLines, b.logLines)
	note(r.logBytes/1024 > b.logKiB, "%.0f KiB of log a second, allowed are %.0f", r.logBytes/1024, b.logKiB)
	note(r.longestLine > longestLine, "a line of log of %d bytes, allowed are %d", r.longestLine, longestLine)
	return append(all, r.wrong...)
}

// readLog measures the rate of log lines. A burst counts for at least 5 s.
func (r *row) readLog(text string, time time.Duration) {
	seconds := max(5, time.Seconds())
	r.logBytes = float64(len(text)) / seconds
	for line := range strings.Lines(text) {
		r.logLines += 1 / seconds
		r.longestLine = max(r.longestLine, len(line))
	}
}

// heading begins the table that make attack prints.
const heading = "| attack | on | sent | memory before, peak, after, MiB | recovered after | honest calls: sent, delivered | " +
	"agents started, traced, slowest | honest requests: sent, answered, slowest | log a second | ended after SIGTERM | counted and seen | verdict |\n" +
	"|---|---|---|---|---|---|---|---|---|---|---|---|\n"

// String returns the row of the table.
func (r *row) String() string {
	verdict := "**" + strings.Join(r.broken(), "; ") + "**"
	if len(r.broken()) == 0 {
		verdict = "held"
	}
	recovered := "not in time"
	switch {
	case r.terminate > 0:
		recovered = ""
	case r.recovered >= 0:
		recovered = r.recovered.Round(100 * time.Millisecond).String()
	}
	return fmt.Sprintf("| %s | %s | %s | %d, **%d**, %d | %s | %d, %d | %d, %d, %v | %d, %d, %v | %.1f lines, %.1f KiB, longest %d bytes | %v | %s | %s |\n",
		r.name, r.configuration, strings.Join(r.sent, "; "), r.before>>20, r.peak>>20, r.after>>20, recovered, r.calls, r.delivered,
		r.started, r.traced, r.slowest.Round(100*time.Millisecond), r.asked, r.answered, r.slowestAnswer.Round(10*time.Millisecond),
		r.logLines, r.logBytes/1024, r.longestLine, r.ended.Round(100*time.Millisecond), strings.Join(append(r.counters, r.notes...), "; "), verdict)
}
