// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/lttng/mapping"
	"github.com/callbraid/callbraid/internal/lttng/process"
	"github.com/callbraid/callbraid/internal/lttng/sim/synthetic"
)

const second = 1_000_000_000

// served reads synthetic sessions to their ends.
func served(t *testing.T, sessions []*synthetic.Session, options ...option) *bed {
	t.Helper()
	var recordings []*lttnglive.Recording
	for i, s := range sessions {
		recordings = append(recordings, s.Recording(uint64(i+1)))
	}
	r := newRelay(t, recordings, lttnglive.RelayOptions{})
	b := newBed(t, append([]option{reading(r.address())}, options...)...)
	b.await("the ends of the sessions", func() bool { return b.said.FilterMessage("The session was closed").Len() == len(sessions) })
	b.shutdown()
	return b
}

// story returns the events of a call stream as texts.
func (s *streamSeen) story(t *testing.T) []string {
	var story []string
	for _, e := range s.inOrder(t) {
		story = append(story, fmt.Sprint(e.kind, " ", e.function, " ", e.lane))
	}
	return story
}

func TestAReusedProcessIDIsAnotherProcess(t *testing.T) {
	s := synthetic.New("reuse", "vpid", "vtid", "procname$")
	s.Class("lttng_ust_statedump:start")
	s.Class("lttng_ust_statedump:end")
	s.Class(mapping.EventCygEntry, "addr", "call_site")
	s.Class(mapping.EventCygExit, "addr", "call_site")
	a := s.Stream().Packet(1)
	a.Event(1*second, "lttng_ust_statedump:start", 7, 8, "first-ust").Event(1*second, "lttng_ust_statedump:start", 7, 8, "first-ust")
	a.Event(1*second+1, "lttng_ust_statedump:end", 7, 8, "first-ust")
	a.Event(1*second+2, mapping.EventCygEntry, 7, 7, "first", 16, 0)
	a.Event(9*second, "lttng_ust_statedump:start", 7, 8, "second-ust").Event(9*second+1, "lttng_ust_statedump:end", 7, 8, "second-ust")
	a.Event(9*second+2, mapping.EventCygEntry, 7, 7, "second", 32, 0).Event(9*second+3, mapping.EventCygExit, 7, 7, "second", 32, 0)
	b := served(t, []*synthetic.Session{s})
	programs := map[string][]string{}
	for id, stream := range b.pipeline.streams(t) {
		programs[textOf(stream.resource.Attributes(), process.AttributeServiceName)] = stream.story(t)
		assert.Equal(t, "7", textOf(stream.resource.Attributes(), process.AttributeProcessID))
		assert.Equal(t, process.UUIDText(id), textOf(stream.resource.Attributes(), process.AttributeServiceInstanceID))
		assert.True(t, stream.has(callevent.BarrierEnd, callevent.CauseEnded))
	}
	assert.Equal(t, map[string][]string{
		"unknown_service:first":  {"enter 0x10 7"},
		"unknown_service:second": {"enter 0x20 7", "exit 0x20 7"},
	}, programs)
}

// state adds a state dump of a process with an object at an address to a stream.
func state(s *synthetic.Stream, at uint64, program string, base int) {
	s.Event(at, "lttng_ust_statedump:start", 7, 8, program+"-ust")
	s.Event(at+1, "lttng_ust_statedump:procname", 7, 8, program+"-ust", program)
	s.Event(at+2, "lttng_ust_statedump:bin_info", 7, 8, program+"-ust", base, 0x100, "/lib/common", 0)
}

// twoDumps returns a session in which process 7 records its state, and later the state of a program of this name with
// its object at base. There are calls before, between and after.
func twoDumps(program string, base int) *synthetic.Session {
	s := synthetic.New("again", "vpid", "vtid", "procname$")
	s.Class("lttng_ust_statedump:start")
	s.Class("lttng_ust_statedump:procname", "procname$")
	s.Class("lttng_ust_statedump:bin_info", "baddr", "memsz", "path$", "has_build_id")
	s.Class("lttng_ust_statedump:end")
	s.Class(mapping.EventCygEntry, "addr", "call_site")
	s.Class(mapping.EventCygExit, "addr", "call_site")
	a := s.Stream().Packet(1)
	state(a, 1*second, "first", 0x1000)
	a.Event(1*second+3, "lttng_ust_statedump:end", 7, 8, "first-ust")
	a.Event(2*second, mapping.EventCygEntry, 7, 7, "first", 0x1010, 0)
	// Tracing is stopped. It resumes for a thread before the process records that.
	a.Packet(9*second-5).Event(9*second-5, mapping.EventCygExit, 7, 7, program, base+0x10, 0)
	state(a, 9*second, program, base)
	a.Event(9*second+3, mapping.EventCygEntry, 7, 9, program, base+0x20, 0)
	a.Event(9*second+4, "lttng_ust_statedump:end", 7, 8, program+"-ust")
	a.Event(9*second+5, mapping.EventCygExit, 7, 9, program, base+0x20, 0)
	return s
}

// The kernel truncates names of threads to 15 bytes, and the tracer's first event of a process is from a thread with
// a suffix in its name.
func TestAServiceHasTheWholeNameOfItsProcess(t *testing.T) {
	s := synthetic.New("long", "vpid", "vtid", "procname$")
	s.Class("lttng_ust_statedump:start")
	s.Class("lttng_ust_statedump:procname", "procname$")
	s.Stream().Packet(1).
		Event(1, "lttng_ust_statedump:start", 7, 8, "warehouse-s-ust").
		Event(2, "lttng_ust_statedump:procname", 7, 8, "warehouse-s-ust", "warehouse-shop")
	r := newRelay(t, []*lttnglive.Recording{s.Recording(1)}, lttnglive.RelayOptions{})
	b := newBed(t, reading(r.address()))
	for _, r := range b.awaitRecords(2) {
		assert.Equal(t, "unknown_service:warehouse-shop", textOf(r.resource.Attributes(), process.AttributeServiceName), r.EventName())
	}
}

func TestAServiceOfJavaOrPythonIsNotNamedAfterItsThreads(t *testing.T) {
	for event, service := range map[string]string{
		"lttng_jul:event": "java", "lttng_log4j:event": "java", "lttng_log4j2:event": "java", "lttng_python:event": "python",
		"shop:open": "pool-1-thread-1",
	} {
		s := synthetic.New("threads", "vpid", "vtid", "procname$")
		s.Class(event, "msg$")
		s.Stream().Packet(1).Event(2, event, 7, 8, "pool-1-thread-1", "text")
		r := newRelay(t, []*lttnglive.Recording{s.Recording(1)}, lttnglive.RelayOptions{})
		b := newBed(t, reading(r.address()))
		assert.Equal(t, "unknown_service:"+service, textOf(b.awaitRecords(1)[0].resource.Attributes(), process.AttributeServiceName), event)
		b.shutdown()
	}
}

func TestAProcessWithTheSameSecondStateDumpIsTheSame(t *testing.T) {
	b := served(t, []*synthetic.Session{twoDumps("first", 0x1000)})
	stream := b.pipeline.only(t)
	assert.Equal(t, []string{"enter common+0x10 7", "exit common+0x10 7", "enter common+0x20 9", "exit common+0x20 9"}, stream.story(t))
	assert.Contains(t, stream.barriers, callevent.Interval(1, 2, callevent.CauseSuspended), "calls before the process's state dump are not paired")
	spans := map[string]string{}
	for _, span := range b.pipeline.spans(t) {
		spans[span.Name()] = textOf(span.Attributes(), "callbraid.truncated")
	}
	assert.Equal(t, map[string]string{"common+0x10": "suspended", "common+0x20": ""}, spans)
	assert.Zero(t, b.said.FilterMessageSnippet("lttng_ust_statedump:*").Len())
}

// The second state dump lacks a library that was unloaded while tracing was stopped.
func TestAnObjectThatASecondStateDumpLacksIsUnloaded(t *testing.T) {
	s := synthetic.New("unloaded", "vpid", "vtid", "procname$")
	s.Class("lttng_ust_statedump:start")
	s.Class("lttng_ust_statedump:procname", "procname$")
	s.Class("lttng_ust_statedump:bin_info", "baddr", "memsz", "path$", "has_build_id")
	s.Class("lttng_ust_statedump:end")
	s.Class(mapping.EventCygEntry, "addr", "call_site")
	a := s.Stream().Packet(1)
	state(a, 1*second, "first", 0x1000)
	a.Event(1*second+3, "lttng_ust_statedump:bin_info", 7, 8, "first-ust", 0x2000, 0x100, "/lib/plugin", 0)
	a.Event(1*second+4, "lttng_ust_statedump:end", 7, 8, "first-ust")
	a.Event(2*second, mapping.EventCygEntry, 7, 7, "first", 0x2010, 0)
	state(a, 9*second, "first", 0x1000)
	a.Event(9*second+3, "lttng_ust_statedump:end", 7, 8, "first-ust")
	a.Event(9*second+4, mapping.EventCygEntry, 7, 7, "first", 0x2010, 0).Event(9*second+5, mapping.EventCygEntry, 7, 7, "first", 0x1010, 0)
	b := served(t, []*synthetic.Session{s})
	assert.Equal(t, []string{"enter plugin+0x10 7", "enter 0x2010 7", "enter common+0x10 7"}, b.pipeline.only(t).story(t))
}

// If processes do not record their state, the empty packets at the stop of tracing mark it.
func TestCallsAreNotPairedAcrossTracingThatWasStopped(t *testing.T) {
	s := synthetic.New("stopped", "vpid", "vtid")
	s.Class(mapping.EventCygEntry, "addr", "call_site")
	s.Class(mapping.EventCygExit, "addr", "call_site")
	s.Stream().Packet(10).Event(10, mapping.EventCygEntry, 7, 7, 16, 0).Packet(200).Event(200, mapping.EventCygExit, 7, 7, 16, 0)
	s.Stream().Packet(5).Event(5, mapping.EventCygEntry, 7, 8, 32, 0).Event(20, mapping.EventCygExit, 7, 8, 32, 0).Packet(100).Packet(300).Event(300, mapping.EventCygEntry, 7, 8, 32, 0)
	b := served(t, []*synthetic.Session{s})
	assert.Contains(t, b.pipeline.only(t).barriers, callevent.Point(3, callevent.CauseSuspended))
	spans := map[string]string{}
	for _, span := range b.pipeline.spans(t) {
		spans[fmt.Sprint(span.Name(), " at ", int64(span.StartTimestamp())%second)] = textOf(span.Attributes(), "callbraid.truncated")
	}
	assert.Equal(t, map[string]string{"0x20 at 5": "", "0x10 at 10": "suspended", "0x20 at 300": "ended"}, spans)
	assert.Equal(t, 1, b.said.FilterMessageSnippet("lttng_ust_statedump:*").Len())
}

func TestAProcessWithAnotherStateDumpIsAnother(t *testing.T) {
	b := served(t, []*synthetic.Session{twoDumps("second", 0x5000)})
	stories := map[string][]string{}
	for _, span := range b.pipeline.spans(t) {
		assert.NotContains(t, span.Name(), "0x5010", "an exit alone is no call")
		stories["spans"] = append(stories["spans"], span.Name())
	}
	assert.ElementsMatch(t, []string{"common+0x10", "common+0x20"}, stories["spans"])
	for _, stream := range b.pipeline.streams(t) {
		program := textOf(stream.resource.Attributes(), process.AttributeServiceName)
		assert.True(t, stream.has(callevent.BarrierEnd, callevent.CauseEnded))
		if program == "unknown_service:second" {
			stories[program] = stream.story(t)
		} else {
			stories[program] = nil
			assert.Contains(t, stream.barriers, callevent.Interval(1, 2, callevent.CauseSuspended))
			assert.Contains(t, stream.barriers, callevent.Interval(2, 3, callevent.CauseSuspended), "the number that the other one's call had is not waited for")
		}
	}
	assert.Equal(t, []string{"enter common+0x20 9", "exit common+0x20 9"}, stories["unknown_service:second"])
	assert.Len(t, stories, 3)
}

func TestPIDNamespacesAreDifferentProcesses(t *testing.T) {
	s := synthetic.New("containers", "vpid", "vtid", "pid_ns")
	s.Class(mapping.EventCygEntry, "addr", "call_site")
	s.Stream().Packet(1).Event(1, mapping.EventCygEntry, 1, 1, 100, 16, 0).Event(2, mapping.EventCygEntry, 1, 1, 200, 32, 0)
	b := served(t, []*synthetic.Session{s})
	assert.Len(t, b.pipeline.streams(t), 2)
}

func TestACallEventWithoutProcessOrThreadIsCounted(t *testing.T) {
	for name, c := range map[string]struct {
		contexts []string
		values   []any
	}{
		"no process": {[]string{"vtid"}, []any{5}},
		"no thread":  {[]string{"vpid"}, []any{5}},
	} {
		t.Run(name, func(t *testing.T) {
			s := synthetic.New("blind", c.contexts...)
			s.Class(mapping.EventCygEntry, "addr", "call_site")
			a := s.Stream().Packet(1)
			for i := range 3 {
				a.Event(uint64(i+1), mapping.EventCygEntry, append(slices.Clone(c.values), 16, 0)...)
			}
			b := served(t, []*synthetic.Session{s})
			assert.EqualValues(t, 3, b.metric("receiver_lttng_live_call_events_dropped"))
			assert.Zero(t, b.pipeline.events())
			assert.Len(t, b.records(), 3)
			warnings := b.said.FilterMessageSnippet("lttng add-context")
			require.Equal(t, 1, warnings.Len())
		})
	}
}

func TestATraceOfOneProcessHasItsIDInItsEnvironment(t *testing.T) {
	s := synthetic.New("own", "vtid")
	s.Environment = `vpid = 42; procname = "shop";`
	s.Class(mapping.EventCygEntry, "addr", "call_site")
	a := s.Stream().Packet(1).Event(1, mapping.EventCygEntry, 5, 16, 0)
	a.Path = "ust/pid/shop-42-20260101-000000"
	b := served(t, []*synthetic.Session{s})
	stream := b.pipeline.only(t)
	assert.Equal(t, "42", textOf(stream.resource.Attributes(), process.AttributeProcessID))
	assert.Equal(t, "unknown_service:shop", textOf(stream.resource.Attributes(), process.AttributeServiceName))
	assert.Equal(t, 1, b.said.FilterMessageSnippet("The session has buffers for each process").Len())
}

// A relay daemon up to 2.13 drops unread packets when a process ends.
func TestAStreamWithoutItsLastPacketIsLogged(t *testing.T) {
	for _, c := range []struct {
		name    string
		path    string
		packets []uint64 // unused bits of each
		cut     int64
	}{
		{"its last packet was closed by the process's end", "ust/pid/shop-42", []uint64{0, 20_000}, 0},
		{"its last packet was full", "ust/pid/shop-42", []uint64{20_000, 0}, 1},
		{"it sent no packet", "ust/pid/shop-42", nil, 1},
		{"a user's buffers outlive processes", "ust/uid/0/64-bit", []uint64{20_000, 0}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := synthetic.New("own", "vpid", "vtid")
			s.Class(mapping.EventCygEntry, "addr", "call_site")
			a := s.Stream()
			a.Path = c.path
			for i, room := range c.packets {
				a.Packet(uint64(10*i+1)).Event(uint64(10*i+1), mapping.EventCygEntry, 42, 5, 16, 0)
				a.Packets[i].Room = room
			}
			b := served(t, []*synthetic.Session{s})
			assert.EqualValues(t, c.cut, b.metric("receiver_lttng_live_streams_cut"))
			assert.EqualValues(t, c.cut, b.metric("receiver_lttng_live_packets_lost"))
			assert.EqualValues(t, c.cut, b.said.FilterMessageSnippet("before the relay daemon sent its last packet").Len())
		})
	}
}

func TestAnExitOfTheFastVariantEndsTheLastEnteredFunction(t *testing.T) {
	s := synthetic.New("fast", "vpid", "vtid")
	s.Class(mapping.EventCygFastEntry, "addr")
	s.Class(mapping.EventCygFastExit)
	s.Stream().Packet(1).Event(1, mapping.EventCygFastEntry, 7, 7, 16).Event(2, mapping.EventCygFastEntry, 7, 7, 32).
		Event(3, mapping.EventCygFastExit, 7, 7).Event(4, mapping.EventCygFastExit, 7, 7)
	b := served(t, []*synthetic.Session{s})
	assert.Equal(t, []string{"enter 0x10 7", "enter 0x20 7", "exit top  7", "exit top  7"}, b.pipeline.only(t).story(t))
	names := map[string]int{}
	for _, span := range b.pipeline.spans(t) {
		names[span.Name()]++
	}
	assert.Equal(t, map[string]int{"0x10": 1, "0x20": 1}, names)
}

func TestRulesMakeCallsOfOtherEvents(t *testing.T) {
	s := synthetic.New("rules", "vpid", "vtid")
	s.Class("shop:begin", "id", "text$")
	s.Class("shop:end", "id")
	s.Class("db:begin", "sql$")
	s.Class("db:end", "rows")
	s.Class("gc:begin")
	s.Class("gc:end")
	s.Stream().Packet(1).
		Event(1, "shop:begin", 7, 7, 1, "pay").
		Event(2, "shop:begin", 7, 7, 2, "list").
		Event(3, "db:begin", 7, 9, "select").
		Event(4, "gc:begin", 7, 9).
		Event(5, "gc:end", 7, 9).
		Event(6, "db:end", 7, 9, 3).
		Event(7, "shop:end", 7, 8, 1).
		Event(8, "shop:end", 7, 8, 2)
	rules := func(_ *bed, c *Config) {
		c.CallRules = []CallRule{
			{Entry: event("shop:begin"), Exit: event("shop:end"), NameField: "text", KeyFields: []string{"id"}},
			{Entry: event("db:begin"), Exit: event("db:end"), NameField: "sql"},
			{Entry: event("gc:begin"), Exit: event("gc:end"), Name: "collect garbage"},
		}
	}
	b := served(t, []*synthetic.Session{s}, rules)
	ends := map[string]int64{}
	for _, span := range b.pipeline.spans(t) {
		ends[span.Name()] = span.EndTimestamp().AsTime().UnixNano() - 1_700_000_000*second
		_, truncated := span.Attributes().Get("callbraid.truncated")
		assert.False(t, truncated, span.Name())
	}
	assert.Equal(t, map[string]int64{"pay": 7, "list": 8, "select": 6, "collect garbage": 5}, ends)
}

func TestARuleWithoutItsKeyFieldIsLogged(t *testing.T) {
	s := synthetic.New("keyless", "vpid", "vtid")
	s.Class("shop:begin")
	s.Class("shop:end")
	s.Stream().Packet(1).Event(1, "shop:begin", 7, 7).Event(2, "shop:end", 7, 7)
	b := served(t, []*synthetic.Session{s}, func(_ *bed, c *Config) {
		c.CallRules = []CallRule{{Entry: event("shop:begin"), Exit: event("shop:end"), Name: "n", KeyFields: []string{"id"}}}
	})
	assert.EqualValues(t, 2, b.metric("receiver_lttng_live_call_events_dropped"))
	assert.Equal(t, 2, b.said.FilterMessageSnippet("correct key_field").Len())
}

func TestAddressesWaitForTheListOfObjects(t *testing.T) {
	s := synthetic.New("waiting", "vpid", "vtid")
	s.Class("lttng_ust_statedump:start")
	s.Class("lttng_ust_statedump:bin_info", "baddr", "memsz", "path$", "has_build_id")
	s.Class("lttng_ust_statedump:end")
	s.Class(mapping.EventCygEntry, "addr", "call_site")
	s.Class("lttng_ust_dl:dlclose", "baddr")
	s.Stream().Packet(1).
		Event(1, "lttng_ust_statedump:start", 7, 8).
		Event(2, mapping.EventCygEntry, 7, 7, 0x1010, 0).
		Event(3, "lttng_ust_statedump:bin_info", 7, 8, 0x1000, 0x100, "/bin/shop", 0).
		Event(4, "lttng_ust_statedump:end", 7, 8).
		Event(5, mapping.EventCygEntry, 7, 7, 0x1020, 0).
		Event(6, "lttng_ust_dl:dlclose", 7, 7, 0x1000).
		Event(7, mapping.EventCygEntry, 7, 7, 0x1010, 0)
	b := served(t, []*synthetic.Session{s})
	assert.Equal(t, []string{"enter shop+0x10 7", "enter shop+0x20 7", "enter 0x1010 7"}, b.pipeline.only(t).story(t))
}

func TestAddressesWaitForALimitedTime(t *testing.T) {
	s := synthetic.New("incomplete", "vpid", "vtid")
	s.Class("lttng_ust_statedump:start")
	s.Class(mapping.EventCygEntry, "addr", "call_site")
	a := s.Stream().Packet(1).Event(1, "lttng_ust_statedump:start", 7, 8)
	for i := range 5 {
		a.Event(uint64(i)*second, mapping.EventCygEntry, 7, 7, 0x1010, 0)
	}
	b := served(t, []*synthetic.Session{s})
	assert.Len(t, b.pipeline.only(t).story(t), 5)
}

func TestAProcessBeyondTheLimitEndsTheOneWithTheOldestEvent(t *testing.T) {
	s := synthetic.New("many", "vpid", "vtid")
	s.Class(mapping.EventCygEntry, "addr", "call_site")
	a := s.Stream().Packet(1)
	for i := range 4 {
		a.Event(uint64(i+1), mapping.EventCygEntry, 10+i%3, 1, 16, 0)
	}
	b := served(t, []*synthetic.Session{s}, func(_ *bed, c *Config) { c.Limits.MaxProcesses = 2 })
	ends := map[string]int{}
	for _, stream := range b.pipeline.streams(t) {
		for barrier := range stream.barriers {
			ends[fmt.Sprint(textOf(stream.resource.Attributes(), process.AttributeProcessID), " ", barrier.Cause)]++
		}
	}
	assert.Equal(t, map[string]int{"10 limit": 1, "11 limit": 1, "12 ended": 1, "10 ended": 1}, ends)
}

func TestProcessesAreBoundedOverAllTracesOfASession(t *testing.T) {
	var traces []*synthetic.Session
	for i := range 5 {
		s := synthetic.New(fmt.Sprint("trace ", i), "vpid", "vtid")
		s.Class(mapping.EventCygEntry, "addr", "call_site")
		s.Stream().Packet(1).Event(uint64(1+i), mapping.EventCygEntry, 7, 1, 16, 0)
		traces = append(traces, s)
	}
	r := newRelay(t, []*lttnglive.Recording{synthetic.InOneSession("many", traces...)}, lttnglive.RelayOptions{})
	b := newBed(t, reading(r.address()), func(_ *bed, c *Config) { c.Limits.MaxProcesses = 2 })
	b.awaitSaid("The session was closed")
	b.shutdown()
	ends := map[callevent.Cause]int{}
	for _, stream := range b.pipeline.streams(t) {
		for barrier := range stream.barriers {
			ends[barrier.Cause]++
		}
	}
	assert.Equal(t, map[callevent.Cause]int{callevent.CauseLimit: 3, callevent.CauseEnded: 2}, ends)
}

func TestCallsThatWaitForNamesAreBoundedOverAllTracesOfASession(t *testing.T) {
	const traces, calls = 3, 6
	var all []*synthetic.Session
	for i := range traces {
		s := synthetic.New(fmt.Sprint("trace ", i), "vpid", "vtid")
		s.Class("lttng_ust_statedump:start")
		s.Class("lttng_ust_statedump:bin_info", "baddr", "memsz", "path$", "has_build_id")
		s.Class("lttng_ust_statedump:end")
		s.Class(mapping.EventCygEntry, "addr", "call_site")
		a := s.Stream().Packet(1).Event(1, "lttng_ust_statedump:start", 7, 8)
		for n := range calls {
			a.Event(uint64(2+n), mapping.EventCygEntry, 7, 7, 0x1010, 0)
		}
		a.Packet(100).Event(100, "lttng_ust_statedump:bin_info", 7, 8, 0x1000, 0x100, "/lib/common", 0)
		a.Event(101, "lttng_ust_statedump:end", 7, 8)
		all = append(all, s)
	}
	recording := synthetic.InOneSession("unnamed", all...)
	recording.End = 2 * time.Second
	for i := range recording.Streams {
		s := &recording.Streams[i]
		if s.End = recording.End; !s.Metadata {
			s.Steps[1].At = time.Second
		}
	}
	var relayed handClock
	r := newRelay(t, []*lttnglive.Recording{recording}, lttnglive.RelayOptions{Clock: relayed.read})
	b := unstartedBed(t, reading(r.address()), func(_ *bed, c *Config) { c.Limits.MaxWaitingEvents = 10 })
	begin := time.Now()
	b.receiver.kit.Now = func() time.Time { return begin } // no time passes for the wait
	require.NoError(t, b.component().Start(t.Context(), b.host))
	t.Cleanup(b.shutdown)
	b.await("the calls", func() bool { return b.metric("receiver_lttng_live_packets") == traces })
	relayed.move(2 * time.Second)
	b.awaitSaid("The session was closed")
	b.shutdown()
	names := map[string]int{}
	for _, stream := range b.pipeline.streams(t) {
		for _, e := range stream.inOrder(t) {
			names[e.function]++
		}
	}
	// The second and the third trace each end the wait of the one before.
	assert.Equal(t, map[string]int{"0x1010": 2 * calls, "common+0x10": calls}, names)
}

func TestDiscardedEventsAreAnIntervalInEveryCallStream(t *testing.T) {
	s := synthetic.New("discarded", "vpid", "vtid")
	s.Class(mapping.EventCygEntry, "addr", "call_site")
	s.Class(mapping.EventCygExit, "addr", "call_site")
	a := s.Stream().Packet(1).Event(1, mapping.EventCygEntry, 7, 7, 16, 0).Event(2, mapping.EventCygEntry, 9, 9, 32, 0)
	a.Packets[0].End = 10 // the begin of the next packet
	a.Packet(10).Event(12, mapping.EventCygExit, 9, 9, 32, 0).Event(14, mapping.EventCygEntry, 9, 9, 32, 0).Event(30, mapping.EventCygExit, 9, 9, 32, 0)
	a.Packets[1].Discarded, a.Packets[1].End = 3, 35
	a.Packet(40).Event(50, mapping.EventCygEntry, 7, 7, 48, 0)
	a.Packets[1].Room, a.Packets[2].Room = 64, 1<<12 // the last event of the second packet fits
	// The packet is full after its last event: the lost events lie between 30 and the next packet.
	s.Stream().Packet(5).Event(20, mapping.EventCygEntry, 7, 7, 64, 0).Event(33, mapping.EventCygEntry, 7, 7, 80, 0).Event(45, mapping.EventCygExit, 7, 7, 64, 0)
	b := served(t, []*synthetic.Session{s})
	assert.EqualValues(t, 3, b.metric("receiver_lttng_live_events_discarded"))
	got := map[string][]callevent.Barrier{}
	for _, stream := range b.pipeline.streams(t) {
		var breaks []callevent.Barrier
		for barrier := range stream.barriers {
			if barrier.Kind == callevent.BarrierBreak {
				breaks = append(breaks, barrier)
			}
		}
		got[textOf(stream.resource.Attributes(), process.AttributeProcessID)] = breaks
	}
	// They may also have been lost between the end of the previous packet and the second event of this one.
	require.Len(t, got, 2)
	assert.ElementsMatch(t, []callevent.Barrier{callevent.Point(1, callevent.CauseDiscarded), callevent.Interval(2, 3, callevent.CauseDiscarded)}, got["7"])
	assert.ElementsMatch(t, []callevent.Barrier{callevent.Interval(1, 2, callevent.CauseDiscarded), callevent.Point(4, callevent.CauseDiscarded)}, got["9"])
}

func TestRecordsOfOtherLoggers(t *testing.T) {
	s := synthetic.New("loggers", "vpid", "vtid", "procname$")
	s.Class("lttng_log4j:event", "msg$", "logger_name$", "class_name$", "method_name$", "filename$", "line_number$", "timestamp", "int_loglevel", "thread_name$")
	s.Class("lttng_log4j2:event", "msg$", "logger_name$", "class_name$", "method_name$", "filename$", "line_number", "timestamp", "int_loglevel", "thread_name$")
	s.Class("lttng_python:event", "asctime$", "msg$", "logger_name$", "funcName$", "lineno", "int_loglevel", "thread", "threadName$")
	s.Stream().Packet(1).
		Event(1, "lttng_log4j:event", 7, 8, "java", "hello", "com.Shop", "com.Shop", "pay", "Shop.java", "12", 99, 30000, "main").
		Event(2, "lttng_log4j2:event", 7, 8, "java", "hello", "com.Shop", "com.Shop", "pay", "Shop.java", 12, 99, 200, "main").
		Event(3, "lttng_python:event", 7, 8, "python3", "now", "hello", "shop", "pay", 12, 21, 140, "MainThread")
	b := served(t, []*synthetic.Session{s})
	records := b.records()
	require.Len(t, records, 3)
	java := map[string]any{
		"code.function.name": "com.Shop.pay", "code.file.path": "Shop.java", "code.line.number": int64(12),
		"vtid": int64(8), "thread.name": "main", "timestamp": int64(99),
	}
	want := []struct {
		scope, severityText string
		severity            plog.SeverityNumber
		attributes          map[string]any
	}{
		{"com.Shop", "WARN", plog.SeverityNumberWarn, java},
		{"com.Shop", "ERROR", plog.SeverityNumberError, java},
		{"shop", "21", plog.SeverityNumberInfo2, map[string]any{
			"code.function.name": "pay", "code.line.number": int64(12), "thread.id": int64(140), "thread.name": "MainThread",
			"asctime": "now", "vtid": int64(8),
		}},
	}
	for i, w := range want {
		assert.Equal(t, "hello", records[i].Body().Str())
		assert.Equal(t, w.scope, records[i].scope)
		assert.Equal(t, w.severity, records[i].SeverityNumber())
		assert.Equal(t, w.severityText, records[i].SeverityText())
		assert.Equal(t, w.attributes, records[i].Attributes().AsRaw())
	}
}
