// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/reference"
)

// Agents that wait for each other in the middle of their runs.

// stage is where agents wait for each other: before the event of that number. All events
// before it are sent then, and none after it.
type stage struct {
	before  uint32
	open    chan struct{}
	waiting atomic.Int64
}

func newStage(before uint32) *stage { return &stage{before: before, open: make(chan struct{})} }

// ordered is a program that makes the calls of a run in the order in which they happened,
// on one connection. An agent that is captured fills a buffer for each thread, and sends
// them as they are full.
type ordered struct {
	run    *reference.Run
	stages []*stage

	tracer              *bytefrogagent.Tracer
	buffer              *bytefrogagent.Buffer
	methods, exceptions map[string]uint32
	threads             map[uint16]string
}

// Run implements bytefrogagent.Program.
func (p *ordered) Run(tracer *bytefrogagent.Tracer) (err error) {
	p.tracer, p.methods, p.exceptions, p.threads = tracer, map[string]uint32{}, map[string]uint32{}, map[uint16]string{}
	if p.buffer, err = tracer.Acquire(); err != nil {
		return err
	}
	for _, e := range p.run.Events {
		if len(p.stages) > 0 && e.Sequence == p.stages[0].before {
			if err := p.flush(); err != nil {
				return err
			}
			p.stages[0].waiting.Add(1)
			<-p.stages[0].open
			p.stages = p.stages[1:]
		}
		p.add(e)
		const longest = 1024 // of an event with all its names
		if p.buffer.Room() < longest {
			if err := p.flush(); err != nil {
				return err
			}
		}
	}
	tracer.Send(p.buffer)
	return nil
}

func (p *ordered) flush() (err error) {
	p.tracer.Send(p.buffer)
	p.buffer, err = p.tracer.Acquire()
	return err
}

// add appends an event, and first the names that the HQ doesn't know yet.
func (p *ordered) add(e reference.Event) {
	b := p.buffer
	out := bytefrog.Event{Time: e.Time, Sequence: e.Sequence, Line: e.Line, Thread: e.Thread, Type: bytefrog.MessageType(e.Type)}
	known := false
	if out.Method, known = number(p.methods, e.Method); !known {
		b.Data = bytefrog.MapMethod{Method: out.Method, Signature: e.Method}.AppendTo(b.Data)
	}
	if e.Exception != "" {
		if out.Exception, known = number(p.exceptions, e.Exception); !known {
			b.Data = bytefrog.MapException{Exception: out.Exception, Name: e.Exception}.AppendTo(b.Data)
		}
	}
	if name := p.run.ThreadName(e); p.threads[e.Thread] != name {
		p.threads[e.Thread] = name
		b.Data = bytefrog.MapThreadName{Thread: e.Thread, Time: e.Time, Name: name}.AppendTo(b.Data)
	}
	b.Data = bytefrog.AppendEvent(b.Data, out)
	b.Events++
}

// number returns the number of a name, and whether it was sent before.
func number(names map[string]uint32, name string) (n uint32, known bool) {
	if n, known = names[name]; !known {
		n = uint32(len(names) + 1)
		names[name] = n
	}
	return n, known
}

// fleet has agents that do the same at the same time.
type fleet struct {
	agents  []*bytefrogagent.Agent
	results []chan bytefrogagent.Result
}

// startFleet lets that many agents run, dealt out to where they connect. Each sends a run
// once, or waits at the stages on its way.
func startFleet(t testing.TB, n int, endpoints []string, run *reference.Run, stages ...*stage) *fleet {
	t.Helper()
	f := &fleet{}
	for i := range n {
		a := bytefrogagent.New(bytefrogagent.Options{
			Endpoint: endpoints[i%len(endpoints)], DataConnections: 1, ConnectTimeout: testkit.Patience, StartTimeout: testkit.Patience,
		}, &ordered{run: run, stages: stages})
		results := make(chan bytefrogagent.Result, 1)
		go func() { results <- a.Run(t.Context()) }()
		f.agents, f.results = append(f.agents, a), append(f.results, results)
	}
	return f
}

// at waits until all agents are at a stage.
func (f *fleet) at(t testing.TB, s *stage) {
	t.Helper()
	testkit.Eventually(t, "all agents are at the stage", func() (bool, string) {
		waiting := s.waiting.Load()
		return waiting == int64(len(f.agents)), fmt.Sprint(waiting)
	})
}

// complete waits until all agents have sent everything.
func (f *fleet) complete(t testing.TB) {
	t.Helper()
	for _, results := range f.results {
		result := await(t, results)
		require.Equal(t, bytefrogagent.Completed, result.Outcome, "%s (%v)", result.Reason, result.Err)
	}
}
