// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/reference"
	"github.com/callbraid/callbraid/test/kit"
)

// The outputs of the connector stack_pairing across reloads, shutdowns and refusals of the backend. All calls are
// in the sums, or counters have the number of missing ones.

// summedAgents configures a receiver of simulated agents. While the connector refuses, agents wait.
func summedAgents(endpoint string) string {
	return fmt.Sprintf("bytefrog: {endpoint: %q, max_block: 0s, %s, retry: {max_interval: 200ms}}", endpoint, smallAgents)
}

// checkAll compares spans, metrics and profiles of each program with its calls.
func (b *sumBackend) checkAll(t *testing.T, want func(*exported) *reference.Result, programs int) {
	t.Helper()
	spans := b.drain()
	require.Len(t, spans, programs)
	assert.ElementsMatch(t, slices.Collect(maps.Keys(spans)), b.instances())
	for instance, e := range spans {
		result := want(e)
		checkEqual(t, result, e)
		b.check(t, result, instance)
	}
}

// instances returns the programs with metrics.
func (b *sumBackend) instances() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.resources))
}

// A reload or a shutdown at full speed ends the run of the agent. All calls that it had sent are in each
// output. The next agent is counted, too.
func TestSumsAreCompleteAfterAReloadAndAShutdown(t *testing.T) {
	for _, test := range []struct {
		name string
		sent uint64
		end  func(*testing.T, *kit.Collector)
	}{
		{"reload", 1, func(t *testing.T, c *kit.Collector) { c.Reload(t) }},
		{"reload in the middle", 200_000, func(t *testing.T, c *kit.Collector) { c.Reload(t) }},
		{"shutdown", 50_000, func(t *testing.T, c *kit.Collector) { c.Terminate(t) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			b, endpoint := newSumBackend(t), testkit.Address(t)
			c := b.start(fmt.Sprintf("bytefrog: {endpoint: %q, shutdown_timeout: 1m}", endpoint), "shutdown_timeout: 1m", "")
			a, results := agent{endpoint: endpoint, capture: "maven", dial: narrow(endpoint)}.start(t.Context(), t)
			awaitEvents(t, a, test.sent)
			test.end(t, c)
			result := await(t, results)
			programs := 1
			if test.name != "shutdown" {
				agent{endpoint: endpoint, capture: "shop"}.complete(t)
				c.AwaitMetric(t, 1, runsEnded) // metrics begin again at 0 after the reload
				c.Terminate(t)
				programs = 2
			}
			require.NoError(t, c.Exit())
			b.checkAll(t, func(e *exported) *reference.Result {
				if isShop(e) {
					return reference.Spans(openCapture(t, "shop"), defaultRules)
				}
				return sentBy(t, result, e)
			}, programs)
		})
	}
}

// The backend refuses one signal for a while, for which senders try again. The other signals arrive
// meanwhile, and afterwards nothing is missing.
func TestSumsAreCompleteAfterARefusal(t *testing.T) {
	t.Parallel()
	want := reference.Spans(openCapture(t, "shop"), defaultRules)
	for signal, refused := range map[string]struct{ traces, metrics, profiles func() int }{
		"metrics":           {accept, refuse, accept},
		"profiles":          {accept, accept, refuse},
		"traces":            {refuse, accept, accept},
		"the whole backend": {refuse, refuse, refuse},
	} {
		t.Run(signal, func(t *testing.T) {
			t.Parallel()
			b, endpoint := newSumBackend(t), testkit.Address(t)
			b.answerWith(refused.traces)
			b.answerSums(refused.metrics, refused.profiles)
			c := b.start(summedAgents(endpoint), "", "")
			_, results := agent{endpoint: endpoint, capture: "shop"}.start(t.Context(), t)
			testkit.Eventually(t, "refusals", func() (bool, string) { return b.refusals() >= 3, fmt.Sprint(b.refusals()) })
			b.answerWith(accept)
			b.answerSums(accept, accept)
			result := await(t, results)
			require.Equal(t, bytefrogagent.Completed, result.Outcome, result.Reason)
			b.awaitCalls(len(want.Spans))
			// A shutdown cancels a delivery of held spans and repeats it.
			testkit.Eventually(t, "all spans arrive", func() (bool, string) {
				spans := b.spanCount()
				return spans == len(want.Spans), fmt.Sprint(spans)
			})
			assert.Zero(t, c.Metric(t, droppedSpans))
			assert.Zero(t, c.Metric(t, droppedSamples))
			stopAfter(t, c, 1)
			b.checkAll(t, func(*exported) *reference.Result { return want }, 1)
		})
	}
}

// spanCount returns the number of accepted spans.
func (b *sumBackend) spanCount() (n int) {
	b.backend.mu.Lock()
	defer b.backend.mu.Unlock()
	for _, e := range b.streams {
		n += len(e.spans)
	}
	return n
}

// refusals returns the number of refused messages of all signals.
func (b *sumBackend) refusals() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.backend.mu.Lock()
	defer b.backend.mu.Unlock()
	return b.refusedMessages + b.backend.refused
}

// The backend refuses everything for good. Counters have the number of all that it refused. Metrics are
// complete afterwards, because their values are sums since the beginning.
func TestCountersHaveEverythingThatABackendRefusesForGood(t *testing.T) {
	t.Parallel()
	b, endpoint := newSumBackend(t), testkit.Address(t)
	b.answerWith(condemn)
	b.answerSums(condemn, condemn)
	c := b.start(summedAgents(endpoint), "", "")
	agent{endpoint: endpoint, capture: "shop"}.complete(t)
	c.AwaitMetric(t, 1, runsEnded)
	want := reference.Spans(openCapture(t, "shop"), defaultRules)
	c.AwaitMetric(t, float64(len(want.Spans)), droppedSpans, `reason="refused_for_good"`)
	testkit.Eventually(t, "all calls in profiles were refused", func() (bool, string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.refusedCalls == int64(len(want.Spans)) && b.refusedPoints > 0, fmt.Sprint(b.refusedCalls)
	})
	assert.Empty(t, b.drain())
	b.answerWith(accept)
	b.answerSums(accept, accept)

	agent{endpoint: endpoint, capture: "shop"}.complete(t)
	c.AwaitMetric(t, 2, runsEnded)
	points := 0.0
	testkit.Eventually(t, "metrics of both programs", func() (bool, string) {
		calls := b.callsInMetrics()
		points = c.Metric(t, droppedPoints, `reason="refused_for_good"`)
		return calls == float64(2*len(want.Spans)), fmt.Sprint(calls)
	})
	samples, spansDropped := c.Metric(t, droppedSamples), c.Metric(t, droppedSpans)
	c.Stop(t)
	assert.EqualValues(t, b.refusedPoints, points, "dropped points")
	assert.EqualValues(t, b.refusedSamples, samples, "dropped samples")
	assert.EqualValues(t, len(want.Spans), spansDropped, "dropped spans")

	spans := b.drain()
	e := spans.only(t)
	checkEqual(t, want, e)
	second := slices.Collect(maps.Keys(spans))[0]
	b.check(t, want, second)
	for _, instance := range b.instances() {
		functions, paths := b.sums(instance)
		assertFunctionSums(t, functionSumsOf(want), functions)
		assert.Equal(t, instance == second, len(paths) > 0, "profiles of the first program were refused for good")
	}
}

// A collector that is shut down while the backend refuses everything ends, and the traced program does not
// hang.
func TestAShutdownWhileTheBackendRefusesAllSignalsEnds(t *testing.T) {
	t.Parallel()
	b, endpoint := newSumBackend(t), testkit.Address(t)
	b.answerWith(refuse)
	b.answerSums(refuse, refuse)
	c := b.start(summedAgents(endpoint)[:len(summedAgents(endpoint))-1]+", shutdown_timeout: 2s}", "shutdown_timeout: 1s", "")
	a, results := agent{endpoint: endpoint, capture: "maven", settle: busyMachine}.start(t.Context(), t)
	awaitStandstill(t, a)
	c.Terminate(t)
	result := await(t, results)
	require.NotEqual(t, bytefrogagent.Hung, result.Outcome, result.Reason)
	c.Stop(t)
	assert.Empty(t, b.drain())
	assert.Empty(t, b.instances())
	for _, signal := range []string{"points of metrics", "samples of profiles"} {
		assert.Contains(t, c.Log(), "Dropped "+signal)
	}
}
