// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package attack

import "time"

// bound is the allowed cost of an attack. In every attack the backend receives all calls of honest
// programs, no program hangs or dies, the collector traces every starting agent, and pages answer.
type bound struct {
	// peak is the most memory that the collector may have in RAM, in MiB.
	peak int64
	// leftover is how much more memory, in MiB, it may have after the attack than before it.
	leftover int64
	// recovers is the longest time from the end of the attack until a starting agent is traced
	// and memory is down to leftover.
	recovers time.Duration
	// ends is the longest time from SIGTERM to the end of the process.
	ends time.Duration
	// logLines and logKiB are the most lines and KiB of log in a second.
	logLines, logKiB float64
}

// longestLine is the largest length of a log line, in bytes.
const longestLine = 8 << 10

// fullBudget is the memory, in MiB, that a collector may have while its budget is full. By the
// README of memory_budget it is 200 MiB and 2.2 times the limit, which is 40% of memory_limiter's
// 3072 MiB.
const fullBudget = 2900

// sampledLines is the number of lines a second that the Collector's log may have in an attack. The
// log has the first ten lines of each message in a second, then one in a hundred. A bad peer causes
// one of about five messages.
const sampledLines = 50

// usual is the bound of an attack that bounds does not list.
var usual = bound{peak: 600, leftover: 300, recovers: 30 * time.Second, ends: 10 * time.Second, logLines: sampledLines, logKiB: 32}

// bounds are the bounds of attacks with another cost than usual, by name. 0 means as usual.
var bounds = map[string]bound{
	"nested":                       {peak: 600},
	"names":                        {peak: 1228, leftover: 100},
	"names, SIGTERM early":         {peak: 1228, leftover: 100},
	"names, SIGTERM while all are": {peak: 1228, leftover: 100},
	"names, SIGTERM at the end":    {peak: 1228, leftover: 100},
	"relay":                        {peak: fullBudget, leftover: 100},
	// A sender of batches disconnects without a sign. Its call streams stay for idle_timeout, 10
	// min there.
	"batches": {peak: fullBudget, leftover: fullBudget},
	"servers": {peak: fullBudget},
	// These two listeners are the Collector's own and bound no connections. 10,000 of them cost 30 KiB
	// each. Go's runtime collects that garbage up to two minutes later.
	"idle connections of prometheus":   {leftover: 400},
	"idle connections of health_check": {leftover: 400},
	// The prometheus exporter makes a page of 4 MiB for each reader and bounds neither readers nor
	// pages. Only memory_limiter with 2048 MiB does.
	"slow readers and writers": {peak: 2048},
	// Measured when the prometheus exporter kept the series of each service for an hour: about 5 KiB each.
	"100,000 services": {peak: 900, leftover: 800},
}

// boundOf returns the bound of an attack, by its name.
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
