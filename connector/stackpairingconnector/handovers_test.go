// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingconnector

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/componentkit/schema"
	"github.com/callbraid/callbraid/internal/testkit/reference"
)

// epoch is tick 0 of the streams' clocks, which tick in milliseconds.
const epoch = 1_700_000_000_000_000_000

// moved is the host.name that the resource of a moved program has.
const moved = "found later"

// event is an event of a program.
type event struct {
	kind      callevent.Kind
	sequence  uint64
	time      int64
	lane      uint64
	line      uint32
	function  *callevent.Function
	exception string
}

// program is a call stream that becomes hand-overs.
type program struct {
	id       callevent.StreamID
	service  string
	events   []event
	barriers []callevent.Barrier
	renames  []callevent.Rename
}

// delivery says how the events of a program become hand-overs.
type delivery struct {
	// packers is the number of connections, and batch the largest number of events of a batch.
	packers, batch int
	// displaced is the largest number of places by which a batch arrives before its turn. One of so
	// many batches is lost, and one is repeated; 0: none.
	displaced, lost, repeated int
	// lateBarriers: only the last batches have the barriers.
	lateBarriers bool
	// moved: the program has another resource from the middle on. divided: one collector receives the first hand-overs,
	// and another the rest.
	moved, divided bool
}

// handOvers packs the program. Renames arrive with batches of later events.
func (p *program) handOvers(t testing.TB, way delivery, random *rand.Rand) (all []ptrace.Traces) {
	packers := make([]*callevent.Packer, way.packers)
	for i := range packers {
		var err error
		packers[i], err = callevent.NewPacker(callevent.Stream{ID: p.id, Epoch: epoch, Resolution: 1e6}, callevent.MaxBatchBytes)
		require.NoError(t, err)
	}
	next, renames := uint64(0), p.renames
	flush := func(packer *callevent.Packer, barriers []callevent.Barrier) {
		packed, err := packer.Close(barriers, next, epoch+1e15)
		require.NoError(t, err)
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		rs.SetSchemaUrl(schema.URL)
		rs.Resource().Attributes().PutStr("service.name", p.service)
		if way.moved && next > uint64(len(p.events)/2) {
			rs.Resource().Attributes().PutStr("host.name", moved)
		}
		ss := rs.ScopeSpans().AppendEmpty()
		ss.SetSchemaUrl(rs.SchemaUrl())
		packed.To(ss.Spans().AppendEmpty())
		all = append(all, td)
		packer.Reset()
	}
	known := func() []callevent.Barrier {
		if way.lateBarriers {
			return nil
		}
		return p.barriers
	}
	for rest := p.events; len(rest) > 0; {
		packer := packers[random.IntN(len(packers))]
		n := min(1+random.IntN(way.batch), len(rest))
		for i := range rest[:n] {
			e := &rest[i]
			if len(renames) > 0 && e.time > renames[0].Time+5 {
				require.True(t, packer.Rename(renames[0]))
				renames = renames[1:]
			}
			if packer.Len() == way.batch || !add(packer, e) {
				flush(packer, known())
				require.True(t, add(packer, e))
			}
			next = max(next, e.sequence+1)
		}
		rest = rest[n:]
		if way.lateBarriers && random.IntN(4) == 0 {
			flush(packer, p.barriers)
		}
	}
	for _, packer := range packers {
		flush(packer, p.barriers)
	}
	return way.disorder(all, random)
}

// disorder moves, drops and repeats hand-overs.
func (way delivery) disorder(all []ptrace.Traces, random *rand.Rand) (arriving []ptrace.Traces) {
	for i := range all {
		j := i + random.IntN(min(way.displaced+1, len(all)-i))
		all[i], all[j] = all[j], all[i]
	}
	for _, td := range all {
		if way.lost > 0 && random.IntN(way.lost) == 0 {
			continue
		}
		arriving = append(arriving, td)
		if way.repeated > 0 && random.IntN(way.repeated) == 0 {
			arriving = append(arriving, td)
		}
	}
	return arriving
}

func add(packer *callevent.Packer, e *event) bool {
	packed := callevent.Event{Kind: e.kind, Sequence: e.sequence, Time: e.time, Line: e.line}
	ok := true
	if e.kind == callevent.KindSkip {
		return packer.Add(&packed)
	}
	if packed.Lane, ok = packer.Lane(callevent.Lane{ID: e.lane, Name: "lane " + strconv.FormatUint(e.lane, 10)}); !ok {
		return false
	}
	if e.kind != callevent.KindExitTop {
		if packed.Function, ok = packer.Function(e.function); !ok {
			return false
		}
	}
	if e.kind == callevent.KindThrow || e.kind == callevent.KindUnwind || e.kind == callevent.KindFail {
		if packed.Exception, ok = packer.Exception(e.exception); !ok {
			return false
		}
	}
	return packer.Add(&packed)
}

// generate makes a program of random calls, with events that fit to no call.
func generate(random *rand.Rand, number byte, service string, events int) *program {
	p := &program{id: callevent.StreamID{0: number, 8: number, 15: 1}, service: service}
	functions := make([]*callevent.Function, 12)
	for i := range functions {
		functions[i] = &callevent.Function{Qualified: fmt.Sprint("demo.f", i), Display: fmt.Sprint("f", i), File: "demo.go", Line: uint32(i)}
	}
	exceptions := []string{"", "demo.E", "demo.F"}
	stacks := make([][]*callevent.Function, 4)
	time := int64(0)
	for n := range uint64(events) {
		if random.IntN(3) == 0 {
			time += random.Int64N(1 << random.IntN(12))
		}
		at := random.IntN(len(stacks))
		stack := stacks[at]
		e := event{sequence: n, time: time, lane: uint64(at), function: functions[random.IntN(len(functions))], exception: exceptions[random.IntN(len(exceptions))]}
		top := len(stack) - 1
		switch kind := random.IntN(100); {
		case kind < 3:
			e.kind = callevent.KindSkip
		case kind < 5: // often an orphan, or an exit over others
			e.kind = callevent.KindExit
		case top < 0 || kind < 50 && top < 30:
			e.kind = callevent.KindEnter
			stack = append(stack, e.function)
		case kind < 53:
			e.kind, e.function = callevent.KindThrow, stack[top]
		case kind < 58:
			e.kind, e.function = callevent.KindUnwind, stack[top]
			stack = stack[:top]
		case kind < 60:
			e.kind, e.function, e.line = callevent.KindFail, stack[top], 7
			stack = stack[:top]
		case kind < 62:
			e.kind = callevent.KindExitTop
			stack = stack[:top]
		default:
			e.kind, e.function, e.line = callevent.KindExit, stack[top], 7
			stack = stack[:top]
		}
		stacks[at] = stack
		p.events = append(p.events, e)
		if random.IntN(800) == 0 {
			p.renames = append(p.renames, callevent.Rename{Lane: uint64(at), Time: time, Name: fmt.Sprint("renamed ", n)})
		}
	}
	return p
}

// withBreaks adds breaks, and the end.
func (p *program) withBreaks(random *rand.Rand, breaks int) *program {
	for range breaks {
		at := random.Uint64N(uint64(len(p.events)))
		if random.IntN(2) == 0 {
			p.barriers = append(p.barriers, callevent.Point(at, callevent.CauseSuspended))
		} else {
			p.barriers = append(p.barriers, callevent.Interval(at, at+random.Uint64N(20), callevent.CauseDiscarded))
		}
	}
	p.barriers = append(p.barriers, callevent.End(uint64(len(p.events)), callevent.CauseEnded))
	return p
}

// capture is the run of a real agent.
func capture(t testing.TB, name string) *program {
	t.Helper()
	run, err := reference.Open("../../testdata/bytefrog/" + name + ".zip")
	require.NoError(t, err)
	p := &program{id: callevent.StreamID{7}, service: name}
	kinds := map[byte]callevent.Kind{
		byte(bytefrog.TypeMethodEntry): callevent.KindEnter, byte(bytefrog.TypeMethodExit): callevent.KindExit,
		byte(bytefrog.TypeException): callevent.KindThrow, byte(bytefrog.TypeExceptionBubble): callevent.KindUnwind,
	}
	functions := map[string]*callevent.Function{}
	next := uint64(0)
	for _, e := range run.Events {
		next = uint64(e.Sequence) + 1
		kind, isCall := kinds[e.Type]
		if !isCall {
			p.events = append(p.events, event{kind: callevent.KindSkip, sequence: uint64(e.Sequence), time: int64(e.Time)})
			continue
		}
		f := functions[e.Method]
		if f == nil {
			parsed := bytefrog.ParseMethodSignature(e.Method)
			f = &callevent.Function{Qualified: parsed.Qualified, Display: parsed.Display}
			functions[e.Method] = f
		}
		p.events = append(p.events, event{
			kind: kind, sequence: uint64(e.Sequence), time: int64(e.Time), lane: uint64(e.Thread), line: uint32(e.Line), function: f, exception: e.Exception,
		})
	}
	for _, at := range run.Breaks {
		p.barriers = append(p.barriers, callevent.Point(uint64(at), callevent.CauseSuspended))
	}
	p.barriers = append(p.barriers, callevent.End(next, callevent.CauseEnded))
	return p
}
