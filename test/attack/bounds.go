// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package attack

import "time"

// bound is what an attack may cost. Whatever the attack, every call of honest programs is
// delivered, no program hangs or dies, every agent that starts is traced, and pages answer.
type bound struct {
	// peak is the most memory that the collector may have, in MiB.
	peak int64
	// leftover is how much more memory, in MiB, it may have afterwards than before.
	leftover int64
	// recovers is how long after the attackers left an agent that starts is traced, and
	// memory is down to leftover.
	recovers time.Duration
	// ends is how long the process may take after SIGTERM.
	ends time.Duration
	// logLines and logKiB is how much may be logged in a second.
	logLines, logKiB float64
}

// longestLine is how many bytes a line of log may have.
const longestLine = 8 << 10

// fullBudget is what a collector may have, in MiB, whose budget is full: 2.2 times its limit, which
// is 40% of memory_limiter's 3072 MiB, and 200 MiB. So says memory_budget.
const fullBudget = 2900

// sampledLines is how many lines a second the Collector's log has in an attack: it lets ten of each
// message through, and one in a hundred after these. A bad peer has one message of five or so.
const sampledLines = 50

// usual is the bound of what is not in bounds.
var usual = bound{peak: 600, leftover: 300, recovers: 30 * time.Second, ends: 10 * time.Second, logLines: sampledLines, logKiB: 32}

// bounds are those of attacks that may cost more, by their names. 0: as usual.
var bounds = map[string]bound{
	"nested":                       {peak: 600},
	"names":                        {peak: 1228, leftover: 100},
	"names, SIGTERM early":         {peak: 1228, leftover: 100},
	"names, SIGTERM while all are": {peak: 1228, leftover: 100},
	"names, SIGTERM at the end":    {peak: 1228, leftover: 100},
	"relay":                        {peak: fullBudget, leftover: 100},
	// Nobody sees a sender of batches leave: its call streams stay for idle_timeout, 10 min there.
	"batches": {peak: fullBudget, leftover: fullBudget},
	"servers": {peak: fullBudget},
	// These two listeners are the Collector's own and bound no connections. 10,000 of them cost 30 KiB
	// each. Go's runtime collects that garbage up to two minutes later.
	"idle connections of prometheus":   {leftover: 400},
	"idle connections of health_check": {leftover: 400},
	// The prometheus exporter makes a page of 4 MiB for each reader, and bounds neither readers nor
	// pages: memory_limiter of 2048 MiB does.
	"slow readers and writers": {peak: 2048},
	// The prometheus exporter keeps the series of each service for an hour: about 5 KiB each.
	"100,000 services": {peak: 900, leftover: 800},
}

// boundOf is the bound of an attack.
func boundOf(name string) bound {
	b := bounds[name]
	or(&b.peak, usual.peak)
	or(&b.leftover, usual.leftover)
	or(&b.recovers, usual.recovers)
	or(&b.ends, usual.ends)
	or(&b.logLines, usual.logLines)
	or(&b.logKiB, usual.logKiB)
	return b
}

// or has a value that is 0 be another.
func or[T int64 | float64 | time.Duration](value *T, otherwise T) {
	if *value == 0 {
		*value = otherwise
	}
}
