// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package flamegraphexporter

import (
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/componentkit/logline"
)

// bounds log, once for each burst, that a bound was reached, or that calls count twice. Otherwise an
// operator would take wrong numbers for right ones.
type bounds struct {
	mu    sync.Mutex
	known [len(bounded)]uint64
	burst [len(bounded)]logline.Burst
}

// bounded are the log lines of bounds. Forgotten calls have none: max_pending is for that, and
// it seldom does harm.
var bounded = [...]struct {
	text string
	of   func(*calltree.Counters) uint64
}{
	{"Small call paths are folded to make room: raise max_nodes or max_names_mib, or see whether names hold numbers or IDs",
		func(c *calltree.Counters) uint64 { return c.FoldedPaths }},
	{"There are more than max_services services: the others are shown as one",
		func(c *calltree.Counters) uint64 { return c.OtherServices }},
	{"More active services replaced others, which are now among the other services: raise max_services",
		func(c *calltree.Counters) uint64 { return c.YieldedServices }},
	{"The memory budget requested memory: the exporter dropped kept spans and remembered calls, or folded small call paths. " +
		"Raise limit_mib of the extension memory_budget, or see whether names hold numbers or IDs",
		func(c *calltree.Counters) uint64 { return c.Shed.KeptSpans + c.Shed.Calls + c.Shed.Paths }},
	{"Silent services are forgotten, with their trees, because others need their place: raise max_services",
		func(c *calltree.Counters) uint64 { return c.SilentServices }},
	{"Samples are dropped: their service has profiles of too many kinds",
		func(c *calltree.Counters) uint64 { return c.DroppedSamples }},
	{"A service sends spans and profiles of call paths, and both count, so its calls count twice: set count_spans to false",
		func(c *calltree.Counters) uint64 { return c.MixedServices }},
	{"Windows are refused, because max_windows are being collected: raise it",
		func(c *calltree.Counters) uint64 { return c.RefusedWindows }},
	{"The exporter no longer waits for some callers, and shows their calls without them: raise max_pending or max_nodes",
		func(c *calltree.Counters) uint64 { return c.ParentsNotSeen.Limit }},
}

// log logs the bounds that were reached since the last call.
func (b *bounds) log(now time.Time, counters *calltree.Counters, logger *zap.Logger) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range bounded {
		count := bounded[i].of(counters)
		// Another call may have logged this count already.
		if count <= b.known[i] {
			b.burst[i].Over()
			continue
		}
		b.known[i] = count
		if _, due := b.burst[i].Count(now); due {
			logger.Warn(bounded[i].text, zap.Uint64("since_start", count))
		}
	}
}
