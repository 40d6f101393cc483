// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/processor/stackpairingprocessor"
)

const (
	// threadIDs is the number of IDs that an agent has for threads.
	threadIDs = 1 << 16
	// threadReach is the distance of a new thread's ID from the agent's count, at most.
	threadReach = 1024
)

// spanTree counts spans by their function and the function of their parent, and truncated spans by their function.
type spanTree struct {
	mu        sync.Mutex
	functions map[pcommon.SpanID]string
	parents   map[pcommon.SpanID]pcommon.SpanID
	truncated map[string]int
}

func (s *spanTree) consume(_ context.Context, traces ptrace.Traces) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range traces.ResourceSpans().All() {
		for _, scope := range resource.ScopeSpans().All() {
			for _, span := range scope.Spans().All() {
				s.functions[span.SpanID()] = span.Name()
				s.parents[span.SpanID()] = span.ParentSpanID()
				if cause, ok := span.Attributes().Get("callbraid.truncated"); ok {
					s.truncated[span.Name()+" "+cause.Str()]++
				}
			}
		}
	}
	return nil
}

// nestings counts pairs of a function and the function that called it.
func (s *spanTree) nestings() map[string]int {
	n := map[string]int{}
	for id, function := range s.functions {
		n[strings.TrimSpace(function+" "+s.functions[s.parents[id]])]++
	}
	return n
}

// The methods of the simulated program.
const (
	methodLong = 1 + iota
	methodTick
	methodShort
	methodWork
)

// manyThreads plays a real agent. Its program starts many threads one after the other, and each makes two calls. The
// first thread lives long, makes a call beside every 100th thread and inside the calls of threads with its ID, and
// gets other names. The agent sends the name of a thread, in another buffer, before the thread's first event gets its
// number. New threads get consecutive IDs.
type manyThreads struct {
	names, events []byte
	sequence      uint32
	ticks         int
}

func (m *manyThreads) event(kind bytefrog.MessageType, method uint32, thread int) {
	m.events = bytefrog.AppendEvent(m.events, bytefrog.Event{
		Type: kind, Time: m.sequence / 100, Sequence: m.sequence, Method: method, Thread: uint16(thread),
	})
	m.sequence++
}

func (m *manyThreads) name(thread int, name string) {
	m.names = append(m.names, encode(bytefrog.MapThreadName{Thread: uint16(thread), Time: m.sequence / 100, Name: name})...)
}

func (m *manyThreads) tick() {
	m.event(bytefrog.TypeMethodEntry, methodTick, 0)
	m.event(bytefrog.TypeMethodExit, methodTick, 0)
	m.ticks++
}

func (m *manyThreads) play(threads int, write func(names, events []byte)) {
	m.name(0, "main")
	m.event(bytefrog.TypeMethodEntry, methodLong, 0)
	for thread := 1; thread < threads; thread++ {
		m.name(thread, fmt.Sprint("short-", thread))
		m.event(bytefrog.TypeMethodEntry, methodShort, thread)
		if thread%threadIDs == 0 {
			m.tick()
		}
		m.event(bytefrog.TypeMethodEntry, methodWork, thread)
		m.event(bytefrog.TypeMethodExit, methodWork, thread)
		m.event(bytefrog.TypeMethodExit, methodShort, thread)
		if thread%100 == 0 {
			m.tick()
		}
		if thread%5000 == 0 && thread < threadIDs-2*threadReach {
			m.name(0, fmt.Sprint("main-", thread))
		}
		if thread%500 == 0 || thread == threads-1 {
			write(m.names, m.events)
			m.names, m.events = nil, nil
		}
	}
	m.event(bytefrog.TypeMethodExit, methodLong, 0)
	write(nil, m.events)
}

func TestCallsOfAThreadThatReusesAnIDAreNotNestedIntoThoseOfAnother(t *testing.T) {
	const threads = threadIDs + 3000
	seen := &spanTree{functions: map[pcommon.SpanID]string{}, parents: map[pcommon.SpanID]pcommon.SpanID{}, truncated: map[string]int{}}
	sink, err := consumer.NewTraces(seen.consume)
	require.NoError(t, err)
	factory := stackpairingprocessor.NewFactory()
	config := factory.CreateDefaultConfig().(*stackpairingprocessor.Config)
	config.MaxSpansPerTrace = 0
	pairing, err := factory.CreateTraces(context.Background(), processortest.NewNopSettings(factory.Type()), config, sink)
	require.NoError(t, err)
	require.NoError(t, pairing.Start(context.Background(), componenttest.NewNopHost()))
	// This agent sends no heartbeats, and a busy machine needs much time.
	b := unstartedBed(t, quickly, withDataConnections(2), func(_ *bed, c *Config) { c.MissedHeartbeats = 1000 })
	b.Next.Traces = pairing
	b.Start()
	a := connect(b, 1)
	first, second := a.join(), a.join()
	var methods []byte
	for method, name := range []string{methodLong: "long", methodTick: "tick", methodShort: "short", methodWork: "work"} {
		if name != "" {
			methods = append(methods, encode(bytefrog.MapMethod{Method: uint32(method), Signature: "demo/A." + name + ";0;()V"})...)
		}
	}
	first.write(methods)
	played := &manyThreads{}
	played.play(threads, func(names, events []byte) {
		first.write(names)
		second.write(events)
		// Names that are read long before their events end the calls of the first thread too early.
		b.Await("its events are read", func() bool {
			return b.receiver.env.registry.lookup(a.configuration.RunID).State().Next >= uint64(played.sequence)
		})
	})
	a.finish()
	b.awaitRuns(0)
	require.NoError(t, pairing.Shutdown(context.Background()))
	nestings := seen.nestings()
	assert.Len(t, seen.functions, 1+played.ticks+2*(threads-1), "every call is a span")
	assert.Equal(t, 1, nestings["A.long"])
	assert.Equal(t, played.ticks, nestings["A.tick"]+nestings["A.tick A.long"])
	assert.Equal(t, threads-1, nestings["A.short"])
	assert.Equal(t, threads-1, nestings["A.work"]+nestings["A.work A.short"])
	assert.InDelta(t, threads-1, nestings["A.work A.short"], 300)
	assert.InDelta(t, threads/100, nestings["A.tick A.long"], 100)
	assert.Equal(t, 1, seen.truncated["A.long thread_reused"], "%v", seen.truncated)
	assert.EqualValues(t, threads-threadIDs, b.Counter("threads_reused"))
}
