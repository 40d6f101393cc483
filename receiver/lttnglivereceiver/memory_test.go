// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/componentkit/budget/budgettest"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/lttng/mapping"
	"github.com/callbraid/callbraid/internal/lttng/process"
	"github.com/callbraid/callbraid/internal/lttng/sim/synthetic"
)

// lineDetached is the log line for a session that has to free its memory.
const lineDetached = "The session is detached for now: it holds more of the memory budget than it may. Open calls are not paired"

// holding returns a memory budget of limit bytes, and an option that uses it.
func holding(limit int64) (of *budget.Budget, o option) {
	of = budget.New(limit)
	return of, func(b *bed, _ *Config) { b.host = budgettest.Host(componenttest.NewNopHost(), of) }
}

// namer returns a session with one process. It enters this number of functions once each, with names of this number
// of bytes.
func namer(name string, functions, nameBytes int) *synthetic.Session {
	s := synthetic.New(name, "vpid", "vtid")
	s.Class(mapping.EventJUL, "msg$", "logger_name$", "class_name$", "method_name$", "long_millis", "int_loglevel", "int_threadid")
	p := s.Stream()
	for i := range functions {
		if i%20 == 0 {
			p.Packet(uint64(10 + i))
		}
		p.Event(uint64(10+i), mapping.EventJUL, 7, 7, "ENTRY", "l", "", fmt.Sprint(i, strings.Repeat("x", nameBytes)), 0, mapping.JULFiner, 1)
	}
	return s
}

// of returns the call streams of a session.
func (p *pipeline) of(t *testing.T, session string) (streams []*streamSeen) {
	for _, s := range p.streams(t) {
		if textOf(s.resource.Attributes(), process.AttributeSession) == session {
			streams = append(streams, s)
		}
	}
	return streams
}

func TestTheSessionWithMostMemoryIsDetachedAndContinuesLater(t *testing.T) {
	const functions, nameBytes = 600, 10_000
	hostile, honest := namer("hostile", functions, nameBytes), namer("honest", 50, 10)
	recordings := []*lttnglive.Recording{hostile.Recording(1), honest.Recording(2)}
	for _, recording := range recordings {
		recording.End = lttnglive.Never
		for i := range recording.Streams {
			recording.Streams[i].End = lttnglive.Never
		}
	}
	r := newRelay(t, recordings, lttnglive.RelayOptions{})
	of, limited := holding(4 * mib)
	b := newBed(t, reading(r.address()), withoutLogs, limited)
	b.await("all call events", func() bool { return b.pipeline.events() >= functions+50 })
	b.shutdown()

	assert.Greater(t, b.metric("receiver_lttng_live_sessions_detached"), int64(2))
	line := b.awaitSaid(lineDetached)
	assert.Contains(t, line.ContextMap()["error"], "limit_mib of memory_budget is reached")
	assert.Equal(t, "vm/hostile", line.ContextMap()["session"])
	undisturbed := b.pipeline.of(t, "honest")
	require.Len(t, undisturbed, 1)
	assert.Len(t, undisturbed[0].events, 50)
	assert.Zero(t, undisturbed[0].limited())
	events, limits := 0, 0
	for _, s := range b.pipeline.of(t, "hostile") {
		assert.Empty(t, s.twice)
		events += len(s.events)
		limits += s.limited()
	}
	assert.Equal(t, functions, events, "each event is delivered once")
	assert.Greater(t, limits, 2, "call streams end where the session is detached")
	assert.Zero(t, of.Used())
}

func TestADetachedKernelSessionContinuesWithItsThreads(t *testing.T) {
	const calls, nameBytes = 600, 10_000
	s := newKernelSession("kernel", 1)
	p := s.Streams[0].Event(at(1), "lttng_statedump_process_state", 8, 7, "web")
	for i := range calls {
		if i%20 == 0 {
			p.Packet(at(2 + 2*i))
		}
		name := fmt.Sprint(i, strings.Repeat("x", nameBytes))
		p.Event(at(2+2*i), "net_dev_queue", 1, name).Event(at(3+2*i), "net_dev_xmit", 1, 0, name)
	}
	p.Packet(at(2+2*calls)).
		Event(at(2+2*calls), "sched_switch", "b", 9, 1, "web", 8).
		Event(at(3+2*calls), "syscall_entry_read", 3, 4).
		Event(at(4+2*calls), "syscall_exit_read", 1)
	_, limited := holding(4 * mib)
	recording := s.Recording(1)
	recording.End = lttnglive.Never
	for i := range recording.Streams {
		recording.Streams[i].End = lttnglive.Never
	}
	r := newRelay(t, []*lttnglive.Recording{recording}, lttnglive.RelayOptions{})
	b := newBed(t, reading(r.address()), withoutLogs, limited, func(_ *bed, c *Config) {
		c.CallRules = []CallRule{
			{Entry: event("net_dev_queue"), Exit: event("net_dev_xmit"), Name: "send {name}", Lane: mapping.LaneCPU},
			{Entry: event("syscall_entry_read"), Exit: event("syscall_exit_read"), Name: "read"},
		}
	})
	b.await("all call events", func() bool { return b.pipeline.events() >= 2*calls+2 })
	b.shutdown()
	assert.Positive(t, b.metric("receiver_lttng_live_sessions_detached"))
	assert.Equal(t, []spanSeen{{name: "read", start: 3 + 2*calls, end: 4 + 2*calls, pid: "7", tid: "8"}}, spansNamed(b.pipeline.seen(t), "read"))
}

func TestADetachedSessionFreesItsMemoryWhileThePipelineRefuses(t *testing.T) {
	r := newRelay(t, []*lttnglive.Recording{namer("hostile", 300, 10_000).Recording(1)}, lttnglive.RelayOptions{})
	of, limited := holding(64 * mib)
	b := unstartedBed(t, reading(r.address()), withoutLogs, limited, func(_ *bed, c *Config) {
		c.ShutdownTimeout = 20 * time.Millisecond
		c.Reconnect = RetryConfig{InitialInterval: time.Hour, MaxInterval: time.Hour}
	})
	b.pipeline.refuseWith(errRefused)
	require.NoError(t, b.component().Start(t.Context(), b.host))
	t.Cleanup(b.shutdown)
	b.await("a batch that is refused", func() bool { return b.pipeline.tried() > 3 })
	used := of.Used()
	require.Greater(t, used, int64(400*kib))
	of.SetLimit(used + 128*kib)
	other := of.Group("other").Open(budget.Settings{Leave: func(*budget.Error) { t.Error("the smaller account is asked") }})
	defer other.Close()
	require.NoError(t, other.Reserve(256*kib))
	b.awaitSaid(lineDetached)
	b.await("the memory of the session", func() bool { return of.Used() <= 512*kib })
	assert.Positive(t, b.metric("receiver_lttng_live_batches_dropped"))
	assert.Zero(t, b.pipeline.events())
}

// Reading metadata uses many times its length for a short time, and cannot be stopped. So the budget is charged
// before.
func TestMetadataIsNotReadWithoutRoomInTheBudget(t *testing.T) {
	recording := namer("hostile", 5, 10).Recording(1)
	recording.End = lttnglive.Never
	for i := range recording.Streams {
		s := &recording.Streams[i]
		s.End = lttnglive.Never
		for j := range s.Pieces {
			s.Pieces[j].Data = append(append([]byte(nil), s.Pieces[j].Data...), "/* "+strings.Repeat("x", 300*kib)+" */"...)
		}
	}
	_, limited := holding(4 * mib)
	b := newBed(t, reading(newRelay(t, []*lttnglive.Recording{recording}, lttnglive.RelayOptions{}).address()), withoutLogs, limited)
	b.awaitSaid(lineDetached)
	b.shutdown()
	assert.Zero(t, b.pipeline.events())
}
