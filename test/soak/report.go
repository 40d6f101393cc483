// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/test/kit"
)

// Metrics that several functions use.
const (
	bytefrogEvents  = "otelcol_receiver_bytefrog_events"
	bytefrogDropped = "otelcol_receiver_bytefrog_events_dropped"
	pairingEvents   = "otelcol_processor_stack_pairing_events"
	pairingSpans    = "otelcol_processor_stack_pairing_spans"
	rbkitEvents     = "rbkit.events"
	methodCalls     = "java.method.calls" // of Greys and Arthas
	functionCalls   = "code.function.calls"
	// connector begins the own metrics of the connector.
	connector = "otelcol_connector_stack_pairing_"
)

// paired are the services of the collector with calls that the processor pairs.
var paired = []string{"living", "killed", "lttng"}

// summed are the services with calls that the connector pairs, and ofSummed the label of their receivers.
var summed = []string{"summed", "summed_killed"}

const ofSummed = `receiver="bytefrog/summed`

// ofHostile matches the label of the receiver of Bytefrog that only attackers use.
const ofHostile = `receiver="bytefrog/hostile"`

// forged is the service of the attackers' forged batches. Batches without a service have the empty
// one.
const forged = "forged"

// callsOfSession is the number of calls in the session of LTTng's relay daemon.
const callsOfSession = 109

// announced returns the events of calls that a collector counted and that are in no span. Those for the connector are
// not among them.
func announced(look kit.Look) counts {
	of := func(name string) int64 { return int64(look.Sum("otelcol_" + name)) }
	return counts{
		{"dropped by receivers", int64(look.Sum(bytefrogDropped)-look.Sum(bytefrogDropped, ofSummed)) + of("receiver_lttng_live_call_events_dropped")},
		{"late", of("processor_stack_pairing_late_events")},
		{"in breaks", of("processor_stack_pairing_events_in_breaks")},
		{"orphans", of("processor_stack_pairing_orphans")},
	}
}

// balances returns the balances that must have no unexplained rest.
func (s *soak) balances() []balance {
	look := s.collector.Look(s.t)
	of := func(name string) int64 { return int64(look.Sum("otelcol_" + name)) }
	ofGreys := func(name string, labels ...string) int64 {
		return int64(look.Sum("otelcol_receiver_greys_"+name, append(labels, `receiver="greys"`)...))
	}
	ofArthas := func(name string) int64 { return int64(look.Sum("otelcol_receiver_arthas_"+name, `receiver="arthas"`)) }
	living, killed, lttng, mortal := s.backend.of("living"), s.backend.of("killed"), s.backend.of("lttng"), s.backend.of("mortal")
	lost := announced(look)
	droppedSpans := of("processor_stack_pairing_dropped_spans")
	written, received := s.living.events.Load()+s.killed.events.Load()+s.summed.events.Load()+s.summedKilled.events.Load(), int64(look.Sum(bytefrogEvents))
	toConnector := int64(look.Sum(bytefrogEvents, ofSummed))
	taken := received - toConnector + of("receiver_lttng_live_call_events")
	mortalSent, passed, dropped := s.mortal.sent.events.Load(), int64(s.mortal.guard.Counts().Passed.Load()), int64(s.mortal.guard.Counts().Dropped.Load())
	hostileMessages, hostileDropped := s.published()
	return append(s.balancesOfConnector(look, toConnector), []balance{
		{
			what: "calls of Bytefrog's programs that end by themselves", sent: s.living.calls.Load(), delivered: living.spans,
			atMost: counts{{"begun by events that are lost (below)", lost.sum() - lost.of("orphans")}, {"spans dropped", droppedSpans}},
		},
		{
			what: "events of Bytefrog's programs", sent: written, delivered: received,
			atMost: counts{{"in bytes discarded after the end of runs", (discarded(look) + eventSize - 1) / eventSize}},
			// A program that is killed may not have counted its last written buffers.
			more: (s.killed.lives.Load() + s.summedKilled.lives.Load()) * dataConnections * (8 << 10) / eventSize,
		},
		{
			what: "events of calls that receivers had", sent: taken, delivered: living.events + killed.events + lttng.events,
			lost: lost, atMost: counts{{"in spans dropped", droppedSpans * 200}},
		},
		{
			what: "spans that were finished, through the exporter's queue on disk", sent: int64(look.Sum(pairingSpans)), delivered: s.total(),
			lost: counts{{"dropped by the processor", droppedSpans}, {"dropped by the exporter", of("exporter_send_failed_spans")}},
		},
		{what: "calls of LTTng's session, read repeatedly", sent: callsOfSession, delivered: lttng.spans},
		{
			what: "messages of Rbkit's servers", sent: s.played.messages.Load() + hostileMessages, delivered: of("receiver_rbkit_messages"),
			lost: counts{{"not sent to a slow subscriber", s.played.slow.Load() + hostileDropped}},
		},
		{what: "events in them, in metrics", sent: of("receiver_rbkit_events"), delivered: s.backend.sum(rbkitEvents)},
		{what: "calls that Greys' monitors reported, in metrics", sent: s.played.greysTold.calls.Load(), delivered: s.backend.sum(methodCalls, "greys")},
		{
			what: "call trees that Greys reported, as traces", sent: s.played.greysTold.trees.Load(), delivered: s.backend.of("greys").traces,
			lost: counts{
				{"reported twice", ofGreys("replies_ignored")}, {"left out, because their times are wrong", ofGreys("times_left_out", `reply="tree"`)},
				{"dropped", ofGreys("spans_dropped")},
			},
			// Half a tree can make the next one unreadable.
			atMost: counts{{"in unreadable answers", ofGreys("bad_replies")}},
		},
		{what: "calls that Arthas' monitors reported, in metrics", sent: s.played.arthasTold.calls.Load(), delivered: s.backend.sum(methodCalls, "arthas")},
		{
			what: "call trees that Arthas reported, as traces", sent: s.played.arthasTold.trees.Load(), delivered: s.backend.of("arthas").traces,
			lost: counts{{"left out, because their times are wrong", ofArthas("trees_left_out")}, {"dropped", ofArthas("spans_dropped")}},
		},
		{
			what: "registrations of LTTng's agents, in log records", sent: s.played.registrations.Load(), delivered: s.backend.recordsOf("lttng.agent.registered"),
			lost: counts{{"dropped", of("receiver_lttng_jul_log_records_dropped")}},
		},
		{
			what: "events of programs behind a guard", sent: mortalSent, delivered: passed,
			lost: counts{{"arrived without a collector", dropped}},
		},
		{
			what: "events that went to a collector that is killed", sent: passed, delivered: mortal.events,
			lost: counts{{"counted", s.mortal.toll.announced}},
			atMost: counts{
				{"in the guard and sockets", s.mortal.toll.onTheWay}, {"in receivers", s.mortal.toll.received},
				{"waiting for others", s.mortal.toll.waiting}, {"in open calls", s.mortal.toll.open},
				{"in spans held", s.mortal.toll.held}, {"arrived after the last query", s.mortal.toll.unwatched},
			},
		},
	}...)
}

// balancesOfConnector returns the balances of the connector, which received so many events.
func (s *soak) balancesOfConnector(look kit.Look, received int64) []balance {
	of := func(name string, labels ...string) int64 { return int64(look.Sum(connector+name, labels...)) }
	calls, dropped := of("spans"), int64(look.Sum(bytefrogDropped, ofSummed))
	kept := int64(0)
	for _, service := range summed {
		kept += s.backend.of(service).spans
	}
	return []balance{
		{
			what: "connector: calls of programs that end by themselves, in metrics", sent: s.summed.calls.Load(), delivered: s.backend.sum(functionCalls, "summed"),
			atMost: counts{{"begun by events that are lost", dropped + of("late_events") + of("events_in_breaks")}},
		},
		{what: "… events that its receivers had", sent: received, delivered: of("events"), lost: counts{{"dropped by receivers", dropped}}},
		{what: "… calls of all its programs, in metrics", sent: calls, delivered: s.backend.sum(functionCalls)},
		{what: "… the same in profiles", sent: calls, delivered: s.backend.callsInProfiles()},
		{
			what: "… the same in spans of kept traces", sent: calls, delivered: kept,
			lost: counts{
				{"in traces that keep did not select", of("decided_calls", `criterion="none"`)},
				{"in traces beyond max_spans_per_second", of("limited_calls")}, {"dropped", of("dropped_spans")},
			},
		},
	}
}

// report prints the balances, and fails if one has an unexplained rest.
func (s *soak) report(length time.Duration, load float64) {
	t := s.t
	var b strings.Builder
	fmt.Fprintf(&b, "\n%v at %v times the usual load:\n\n| | sent | delivered | counted as lost | lost with a process, of at most | unexplained |\n|---|---|---|---|---|---|\n", length, load)
	for _, of := range s.balances() {
		b.WriteString(of.row())
		assert.Zero(t, of.unexplained(), of.what)
		assert.Positive(t, of.delivered, of.what)
	}
	fmt.Fprintf(&b, "\n| event | number |\n|---|---|\n")
	for _, of := range s.happened() {
		fmt.Fprintf(&b, "| %s | %d |\n", of.name, of.n)
	}
	if len(s.attackers) > 0 {
		fmt.Fprintf(&b, "\n| attackers beside it | sent |\n|---|---|\n")
	}
	for _, a := range s.attackers {
		fmt.Fprintf(&b, "| %s | %s |\n", strings.TrimPrefix(fmt.Sprintf("%T", a), "*attack."), a.Sent())
	}
	fmt.Fprintf(&b, "\n| after | peak memory, MiB | goroutines | open files |\n|---|---|---|---|\n")
	for _, at := range s.samples {
		fmt.Fprintf(&b, "| %v | %d | %d | %d |\n", at.at.Round(time.Second), at.memory>>20, at.goroutines, at.files)
	}
	fmt.Println(b.String())

	assert.Empty(t, grown(s.samples), "numbers of the collector that grow without an end")
	assert.Zero(t, s.hung(), "programs that hang")
	assert.Zero(t, s.duplicates(), "delivered twice")
}

// hung returns the number of programs that hang.
func (s *soak) hung() int64 {
	return s.living.hung.Load() + s.summed.hung.Load() + s.mortal.sent.hung.Load()
}

// duplicates returns the number of spans that were delivered more than once. A killed collector may
// have been sending some, and sends them again.
func (s *soak) duplicates() (n int64) {
	for _, service := range append(summed, paired...) {
		n += s.backend.of(service).duplicates
	}
	return n
}

// happened returns the numbers of faults and other events.
func (s *soak) happened() counts {
	living, look := s.backend.of("living"), s.collector.Look(s.t)
	return counts{
		{"programs traced by Bytefrog that ended by themselves", s.living.lives.Load() + s.summed.lives.Load()},
		{"their calls in spans of the processor that are marked as truncated", sum(living.truncated)},
		{"of these because a clock was set by an hour", living.truncated["clock"]},
		{"programs that were killed", s.killed.lives.Load() + s.summedKilled.lives.Load()},
		{"runs of all these programs that ended because memory was full", shed(look)},
		{"programs that hang", s.hung()},
		{"sequence numbers given up because no event arrived in time, including those of forged batches", int64(look.Sum("otelcol_processor_stack_pairing_missing_numbers"))},
		{"points of the connector's metrics that an exporter refused twice", int64(look.Sum(connector + "dropped_points"))},
		{"calls that the connector summed without their function or path", int64(look.Sum(connector + "folded_calls"))},
		{"kills of a collector, with its programs behind a guard", s.mortal.kills},
		{"spans that arrived twice then, because they were just being sent", s.backend.of("mortal").duplicates},
		{"spans that arrived twice otherwise", s.duplicates()},
		{"times that LTTng's relay daemon stopped, and returned with the same session", s.played.sessions.Load()},
		{"Rbkit's servers, one after the other", s.played.servers.Load()},
		{"profiles of Arthas' programs", int64(look.Sum("otelcol_receiver_arthas_profile_periods", `receiver="arthas"`, `outcome="done"`))},
		{"times that the back end refused, for 15 s", s.faults.refusals},
		{"times that it was stopped then, for 5 s, and returned", s.faults.restarts},
		{"times that the queue's disk was full, for 5 s", s.faults.full},
		{"times that the back end read slowly, for 5 s", s.faults.crawls},
		{"pages that were read at a byte a second", s.readers.asked.Load()},
		{"of these given up by the server", s.readers.cut.Load()},
		{"connections with garbage, or a hello and nothing more, in one piece or a byte a second", s.noises},
	}
}

// shed returns the number of runs of programs that ended because memory was full.
func shed(look kit.Look) int64 {
	const runsShed = "otelcol_receiver_bytefrog_runs_shed"
	return int64(look.Sum(runsShed) - look.Sum(runsShed, ofHostile))
}

// discarded returns the bytes of programs that arrived after the end of their runs, for example of runs that ended because
// memory was full. Receivers read and discard them, because a program hangs if nobody reads what its agent sends.
func discarded(look kit.Look) int64 {
	const bytesDiscarded = "otelcol_receiver_bytefrog_bytes_discarded"
	return int64(look.Sum(bytesDiscarded) - look.Sum(bytesDiscarded, ofHostile))
}

func sum(by map[string]int64) (n int64) {
	for _, m := range by {
		n += m
	}
	return n
}
