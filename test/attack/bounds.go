// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package attack

import "time"

// bound is what an attack may cost. In every attack all calls of honest programs are delivered,
// no program hangs or dies, every starting agent is traced, and pages answer.
type bound struct {
	// peak is the most memory that the collector may have in RAM, in MiB.
	peak int64
	// leftover is how much more memory, in MiB, it may have after the attack than before it.
	leftover int64
	// recovers is the longest time from the end of the attack until a starting agent is traced
	// and memory is down to leftover.
	recovers time.Duration
	// ends is how long the process may take to end after SIGTERM.
	ends time.Duration
	// logLines and logKiB are how much the collector may log in a second.
	logLines, logKiB float64
}

// longestLine is the most bytes that a line of log may have.
const longestLine = 8 << 10

// fullBudget is how much memory, in MiB, a collector may have whose budget is full. By the README of
// memory_budget it is 200 MiB and 2.2 times the limit, which is 40% of memory_limiter's 3072 MiB.
const fullBudget = 2900

// sampledLines is how many lines a second the Collector's log may have in an attack. The log has the
// first ten lines of each message in a second, then one in a hundred. A bad peer causes one of about
// five messages.
const sampledLines = 50

// usual is the bound of attacks that bounds does not list.
var usual = bound{peak: 600, leftover: 300, recovers: 30 * time.Second, ends: 10 * time.Second, logLines: sampledLines, logKiB: 32}

// bounds are those of attacks that may cost more or less than usual, by name. 0 means as usual.
var bounds = map[string]bound{
	"nested":                       {peak: 600},
	"names":                        {peak: 1228, leftover: 100},
	"names, SIGTERM early":         {peak: 1228, leftover: 100},
	"names, SIGTERM while all are": {peak: 1228, leftover: 100},
	"names, SIGTERM at the end":    {peak: 1228, leftover: 100},
	"relay":                        {peak: fullBudget, leftover: 100},
	// A sender of batches leaves without a sign. Its call streams stay for idle_timeout, 10 min there.
	"batches": {peak: fullBudget, leftover: fullBudget},
	"servers": {peak: fullBudget},
	// These two listeners are the Collector's own and bound no connections. 10,000 of them cost 30 KiB
	// each. Go's runtime collects that garbage up to two minutes later.
	"idle connections of prometheus":   {leftover: 400},
	"idle connections of health_check": {leftover: 400},
	// The prometheus exporter makes a page of 4 MiB for each reader and bounds neither readers nor
	// pages. Only memory_limiter with 2048 MiB does.
	"slow readers and writers": {peak: 2048},
	// The prometheus exporter keeps the series of each service for an hour: about 5 KiB each.
	"100,000 services": {peak: 900, leftover: 800},
}

// boundOf is the bound of an attack, by its name.
func boundOf(name string) bound {
	b := bounds[name]
	setDefault(&b.peak, usual.peak)
	setDefault(&b.leftover, usual.leftover)
	setDefault(&b.recovers, usual.recovers)
	setDefault(&b.ends, usual.ends)
	setDefault(&b.logLines, usual.logLines)
	setDefault(&b.logKiB, usual.logKiB)
	return b
}

// setDefault replaces a value that is 0.
func setDefault[T int64 | float64 | time.Duration](value *T, usual T) {
	if *value == 0 {
		*value = usual
	}
}
