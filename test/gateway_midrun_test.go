// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"net"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/reference"
	"github.com/callbraid/callbraid/test/kit"
)

// midRunStages returns the stages of a run, and the index of the stage at which a collector is killed. Before it are few. From it on,
// the time between two stages is shorter than a look at the collectors.
func midRunStages() (stages []*stage, kill int) {
	const killPercent, firstStep = 40, 10
	for percent, step := firstStep, firstStep; percent < 100; percent += step {
		if percent == killPercent {
			kill, step = len(stages), 1
		}
		stages = append(stages, newStage(uint32(percent*shopEvents/100)))
	}
	return stages, kill
}

// A pairing collector is killed, and one is added, while agents send. Only the calls that the
// killed one had not delivered are missing, and those that are counted as late. Other streams are
// complete.
func TestTheLossOfAKilledPairingCollectorInMidRunIsBounded(t *testing.T) {
	t.Parallel()
	const agents = 24
	stages, kill := midRunStages()
	lastBeforeAdded := len(stages) - 10
	ips, port := loopbacks(t, 4)
	tt := newTiers(t, 4)
	tt.hosts = kit.NewHosts(t, "pairing.test", ips[:3]...)
	tt.resolver = dns("pairing.test", port)
	tt.pairSettings["max_wait: 60s"] = "10s"
	for _, ip := range ips[:3] {
		tt.pair(net.JoinHostPort(ip, port), "")
	}
	for range 2 {
		tt.receive(t.TempDir())
	}
	tt.awaitPairing(3)
	run := openCapture(t, "shop")
	f := startFleet(t, agents, tt.agents, run, stages...)
	for i := range kill {
		f.at(t, stages[i])
		tt.awaitInMemory(agents, progress(run, stages[i].before), agents*shopCalls/10)
		close(stages[i].open)
	}

	f.at(t, stages[kill])
	tt.awaitInMemory(agents, progress(run, stages[kill].before), agents*shopCalls/40)
	const victim = 1
	c := tt.pairing[victim]
	handedOn, taken := c.Metric(t, sentSpans), c.Metric(t, pairedEvents)
	close(stages[kill].open)
	c.AwaitMetric(t, taken+1, pairedEvents)
	c.Kill()
	others := slices.Delete(slices.Clone(tt.pairing), victim, victim+1)
	tt.hosts.Set(t, ips[0], ips[2])
	next := kill + 1
	// Agents continue while the first tier notices, and keep the last stages for the time after
	// that.
	advance := func(upTo, known int) {
		for ; next < upTo; next++ {
			f.at(t, stages[next])
			close(stages[next].open)
			if tt.allKnow(known) {
				next++
				break
			}
		}
		tt.awaitPairing(known)
	}
	advance((kill+lastBeforeAdded)/2, 2)
	others = append(others, tt.pair(net.JoinHostPort(ips[3], port), ""))
	tt.hosts.Set(t, ips[0], ips[2], ips[3])
	advance(lastBeforeAdded, 3)
	for _, s := range stages[next:] {
		f.at(t, s)
		close(s.open)
	}
	f.complete(t)
	tt.awaitDrained(others)
	late := sum(t, others, connectorMetrics+"late_events")
	for _, loss := range []string{"dropped_spans", "corrupt_batches"} {
		assert.Zero(t, sum(t, others, connectorMetrics+loss), loss)
	}
	tt.pairing = others
	tt.stop()

	all := tt.handedOn(4)
	moves := findMoves(t, all, victim)
	before, after := progress(run, stages[kill].before), progress(run, stages[kill+1].before)
	streams := float64(len(all[victim]))
	had := streams*float64(after.begun) - handedOn
	t.Logf("%+v, %v streams with %v calls not delivered before the kill, %v late events", moves, streams, streams*float64(before.begun)-handedOn, late)
	assert.Positive(t, moves.moved)
	assert.Positive(t, moves.stayed)
	causes := causesOf(all)
	assert.Contains(t, causes, "shutdown", "where a stream moved away its calls end with the collector")
	assert.Subset(t, []string{"gap", "shutdown"}, causes)
	assert.Positive(t, moves.missing, "it was killed in mid-run")
	assert.LessOrEqual(t, float64(moves.missing), had+late, "missing calls had not been delivered, or are counted")
}

// causesOf are the causes of which calls were truncated.
func causesOf(handedOn []streams) (causes []string) {
	for _, of := range handedOn {
		for _, e := range of {
			for _, s := range e.spans {
				if s.isTruncated && !slices.Contains(causes, s.truncated) {
					causes = append(causes, s.truncated)
				}
			}
		}
	}
	return causes
}

// made is how many calls of a run have begun, and are open, before an event.
type made struct{ begun, open int }

func progress(run *reference.Run, before uint32) made {
	part := *run
	end := slices.IndexFunc(run.Events, func(e reference.Event) bool { return e.Sequence >= before })
	part.Events = run.Events[:end]
	result := reference.Spans(&part, defaultRules)
	return made{len(result.Spans), result.Truncated[defaultRules.End]}
}

// awaitInMemory waits until all agents have made so many calls, and at most so many ended calls are
// not delivered yet.
func (tt *tiers) awaitInMemory(agents int, each made, most int) {
	tt.t.Helper()
	testkit.Eventually(tt.t, fmt.Sprintf("%d calls at most are on their way", most), func() (bool, string) {
		waiting := float64(agents*(each.begun-each.open)) - sum(tt.t, tt.pairing, sentSpans)
		return waiting <= float64(most), fmt.Sprint(waiting)
	})
}

// allKnow reports whether the first tier knows just so many collectors of the second.
func (tt *tiers) allKnow(pairing int) bool {
	tt.t.Helper()
	return !slices.ContainsFunc(tt.receiving, func(c *kit.Collector) bool {
		return c.Metric(tt.t, "otelcol_loadbalancer_num_backends") != float64(pairing)
	})
}

// awaitDrained waits until no batch is on its way to pairing collectors, or waits in them.
func (tt *tiers) awaitDrained(pairing []*kit.Collector) {
	tt.t.Helper()
	for _, c := range tt.receiving {
		c.AwaitMetric(tt.t, 1, runsEnded)
		testkit.Eventually(tt.t, "the queue on disk is empty", func() (bool, string) {
			queued := c.Metric(tt.t, "otelcol_exporter_queue_size", `exporter="load_balancing"`)
			return queued == 0, fmt.Sprint(queued)
		})
	}
	for _, c := range pairing {
		awaitHandedOn(tt.t, c)
	}
}
