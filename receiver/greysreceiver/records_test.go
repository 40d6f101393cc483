// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest/observer"

	"github.com/callbraid/callbraid/internal/greys/sim/greysserver"
	"github.com/callbraid/callbraid/internal/javamethods"
)

// recorded returns a recorded call of a method, with the simple name of the class as in the console.
func recorded(index int64, at int, threw bool) *javamethods.Record {
	return &javamethods.Record{
		Index: index, Process: index, Time: time.Date(2026, 11, 20, 9, 12, at, 0, time.UTC), Cost: ms(10),
		Returned: !threw, Threw: threw, Object: "0x6e0be858", Class: "Shop", Method: "checkout", IsSimple: true,
	}
}

func detailOf(index int64, class, exception string) *javamethods.RecordDetail {
	r := *recorded(index, 0, exception != "")
	r.Class, r.IsSimple = class, false
	return &javamethods.RecordDetail{
		Record: r, Parameters: []string{"a secret"}, Return: "another", Exception: exception, HasStack: true,
		Stack: javamethods.CallStack{Thread: javamethods.Thread{Name: "main", ID: 1}},
	}
}

func TestRecordedCallsBecomeSpansWithTheirDetails(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Records = []CallsConfig{some("demo.Shop", "checkout", -1)} })
	s := script(t, b, ProtocolConsole)
	s.detail = func(index int64) *javamethods.RecordDetail {
		switch index {
		case 1001:
			return detailOf(index, "demo.Shop", "java.lang.IllegalStateException: card 拒绝 declined\n    at demo.Shop.checkout(Shop.java:11)")
		case 1002:
			return detailOf(index, "demo.Shop", "")
		default:
			return detailOf(index, "demo.Other", "") // the index belongs to another call now
		}
	}
	b.start()
	s.expect("Record demo.Shop checkout 0").answer(affectedOne, recorded(1001, 32, true), recorded(1002, 32, false), recorded(1003, 33, true))
	b.Await("the spans", func() bool { return len(b.Spans()) == 3 })
	spans := b.Spans()
	assert.Equal(t, "Shop.checkout", spans[0].Name())
	assert.Equal(t, map[string]any{
		"code.function.name": "demo.Shop.checkout", "thread.name": "main", "thread.id": int64(1), "error.type": "java.lang.IllegalStateException",
		"greys.tt.index": int64(1001), "greys.tt.process_id": int64(1001), "greys.tt.object": "0x6e0be858",
	}, spans[0].Attributes().AsRaw())
	assert.Equal(t, "Error", spans[0].Status().Code().String())
	assert.Equal(t, map[string]any{
		"exception.type": "java.lang.IllegalStateException", "exception.message": "card 拒绝 declined",
		"exception.stacktrace": "java.lang.IllegalStateException: card 拒绝 declined\n    at demo.Shop.checkout(Shop.java:11)",
	}, spans[0].Events().At(0).Attributes().AsRaw())
	assert.Equal(t, time.Date(2026, 11, 20, 9, 12, 32, 0, time.UTC), spans[0].EndTimestamp().AsTime())
	assert.Equal(t, ms(10), spans[0].EndTimestamp().AsTime().Sub(spans[0].StartTimestamp().AsTime()))

	assert.Equal(t, "demo.Shop.checkout", spans[1].Attributes().AsRaw()["code.function.name"])
	assert.Zero(t, spans[1].Status().Code())

	assert.Equal(t, map[string]any{
		"code.function.name": "Shop.checkout", "greys.tt.class.is_simple": true,
		"greys.tt.index": int64(1003), "greys.tt.process_id": int64(1003), "greys.tt.object": "0x6e0be858",
	}, spans[2].Attributes().AsRaw())
	assert.Equal(t, "Error", spans[2].Status().Code().String())
	assert.Zero(t, spans[2].Events().Len(), "the exception is unknown")
	assert.EqualValues(t, 1, b.point("records_simple"))
	assert.NotEqual(t, spans[0].TraceID(), spans[1].TraceID())
}

func TestRecordedCallsWithoutDetailsAreForwarded(t *testing.T) {
	for name, set := range map[string]func(*Config){
		"details are not supported": func(*Config) {},
		"details are disabled":      func(c *Config) { c.RecordDetails = false },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, func(c *Config) {
				c.Records = []CallsConfig{some("demo.Shop", "checkout", -1)}
				set(c)
			})
			s := script(t, b, ProtocolConsole)
			b.start()
			s.next().answer(affectedOne, recorded(1, 1, false), recorded(2, 2, true), recorded(3, 3, false))
			b.Await("the spans", func() bool { return len(b.Spans()) == 3 })
			assert.EqualValues(t, 3, b.point("records_simple"))
			asked := 0
			for _, text := range s.newCommands() {
				if text == "RecordDetail" {
					asked++
				}
			}
			assert.LessOrEqual(t, asked, 1)
		})
	}
}

func TestRecordedCallsBeyondTheQueueAreForwardedWithoutDetails(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.Records = []CallsConfig{some("demo.Shop", "checkout", -1)}
		c.Limits.MaxDetails = 1
	})
	s := script(t, b, ProtocolConsole)
	asked, goOn := make(chan struct{}, 10), make(chan struct{})
	s.detail = func(index int64) *javamethods.RecordDetail {
		asked <- struct{}{}
		<-goOn
		return detailOf(index, "demo.Shop", "")
	}
	b.start()
	a := s.next()
	a.answer(affectedOne, recorded(1, 1, false))
	<-asked
	a.answer(recorded(2, 1, false), recorded(3, 1, false), recorded(4, 1, false))
	b.Await("two spans", func() bool { return len(b.Spans()) == 2 })
	close(goOn)
	b.Await("all spans", func() bool { return len(b.Spans()) == 4 })
	assert.EqualValues(t, 2, b.point("records_simple"))
}

func TestByGPOnlyNewListedCallsAreForwarded(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.Records = []CallsConfig{some("demo.Shop", "check*", 3), some("demo.Pay", "*", -1)}
		c.GP.RecordsInterval = 10 * time.Millisecond
	})
	s := script(t, b, ProtocolGP)
	b.start()
	record := func(index int64, at int, class string) *javamethods.Record {
		r := recorded(index, at, false)
		r.Class, r.IsSimple = class, false
		return r
	}
	list := func(records ...javamethods.Reply) {
		a := s.expect("Records")
		a.answer(records...)
		a.end <- nil
	}
	list(record(1001, 1, "demo.Shop"), record(1002, 1, "demo.Other"), record(1003, 2, "demo.Pay"))
	list(record(1001, 1, "demo.Shop"), record(1002, 1, "demo.Other"), record(1003, 2, "demo.Pay"), record(1004, 2, "demo.Shop"))
	b.Await("three spans", func() bool { return len(b.Spans()) == 3 })
	assert.EqualValues(t, 3, b.point("records_repeated"))
	assert.EqualValues(t, 1, b.point("replies_ignored{reason=unwanted}"), "the call of demo.Other")
	// The server was restarted and counts from the beginning, which the first list shows.
	list(record(1001, 9, "demo.Shop"), record(1002, 9, "demo.Shop"))
	list(record(1001, 9, "demo.Shop"), record(1002, 9, "demo.Shop"))
	s.expect("Records")
	b.Shutdown()
	assert.Len(t, b.Spans(), 4, "one is beyond the limit")
	ids := map[string]bool{}
	for _, span := range b.Spans() {
		ids[span.TraceID().String()] = true
		assert.NotContains(t, span.Attributes().AsRaw(), "greys.tt.class.is_simple")
	}
	assert.Len(t, ids, 4)
	assert.EqualValues(t, 0, b.point("records_simple"), "the class is known, and there was no exception")
}

// With a wrong zone, spans are wrong by hours.
func TestRecordedCallsOfAnotherTimezoneAreLogged(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Records = []CallsConfig{some("demo.Shop", "checkout", -1)} })
	b.receiver.env.Now = func() time.Time { return receivedAt }
	s := script(t, b, ProtocolConsole)
	b.start()
	at := func(ahead time.Duration) *javamethods.Record {
		r := recorded(1, 0, false)
		r.Time = receivedAt.Add(ahead)
		return r
	}
	a := s.next()
	a.answer(affectedOne, at(0), at(10*time.Minute-1), at(1-10*time.Minute), &javamethods.Record{Index: 1, Method: "checkout", Class: "Shop"})
	lines := func() []observer.LoggedEntry {
		return b.Log.FilterMessageSnippet("set timezone to that of the program").All()
	}
	assert.Empty(t, lines())
	a.answer(at(-2*time.Hour), at(-2*time.Hour))
	require.Len(t, lines(), 1)
	assert.Equal(t, -2*time.Hour, lines()[0].ContextMap()["ahead"])
	assert.Equal(t, "UTC", lines()[0].ContextMap()["timezone"])
}

// Otherwise the flame graph would have each call twice, and with two names if the detail of a recorded call is missing.
func TestARecordedCallThatIsAlsoTracedIsMarkedAsADuplicate(t *testing.T) {
	p := play(t, greysserver.Options{Protocol: greysserver.Console, Program: greysserver.ProgramOptions{Rate: 200, Classes: 2, Methods: 2}})
	b := following(t, func(c *Config) {
		c.Protocol, c.PerMethod, c.RecordDetails = ProtocolConsole, true, false
		c.Traces = []CallsConfig{some("com.example.shop.Service1", "*", -1)}
		c.Records = []CallsConfig{some("com.example.shop.*", "*", -1)}
	}, p).start()
	marked := func(class string) (all, traced int) {
		for _, s := range b.Spans() {
			_, isRecord := s.Attributes().Get("greys.tt.index")
			name, _ := s.Attributes().Get("code.function.name")
			if !isRecord || !strings.HasPrefix(name.Str(), "com.example.shop."+class+".") {
				continue
			}
			all++
			if mark, has := s.Attributes().Get("callbraid.duplicate"); has && mark.Bool() {
				traced++
			}
		}
		return all, traced
	}
	b.Await("recorded calls that are traced", func() bool { _, traced := marked("Service1"); return traced > 20 })
	b.Await("recorded calls of the other class", func() bool { all, _ := marked("Service0"); return all > 20 })
	_, traced := marked("Service0")
	assert.Zero(t, traced, "no command traces them")
	for _, s := range b.Spans() {
		_, isSimple := s.Attributes().Get("greys.tt.class.is_simple")
		assert.False(t, isSimple, "the command has the full class name")
		if _, isRecord := s.Attributes().Get("greys.tt.index"); !isRecord {
			_, has := s.Attributes().Get("callbraid.duplicate")
			assert.False(t, has, "only the call tree has the call")
		}
	}
}
