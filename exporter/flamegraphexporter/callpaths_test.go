// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package flamegraphexporter

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

// sums are the sums of call paths in an interval, by their frames.
type sums map[string]*sumOfPath

// sumOfPath is the sum of a path. A truncated one is another path.
type sumOfPath struct {
	frames    []string // the outermost first
	truncated bool
	thread    int64
	values    [pathValues]int64
}

func (s sums) of(truncated bool, thread int64, frames ...string) *sumOfPath {
	key := fmt.Sprint(truncated, thread, frames)
	if s[key] == nil {
		s[key] = &sumOfPath{frames: slices.Clone(frames), truncated: truncated, thread: thread}
	}
	return s[key]
}

// profiles are the sums as a message of stack_pairing, in random order. Without random numbers they
// are sorted by their frames, and the profiles have no ID.
func (s sums) profiles(random *rand.Rand, service string) pprofile.Profiles {
	pd := pprofile.NewProfiles()
	d := pd.Dictionary()
	text := func(text string) int32 {
		for i, known := range d.StringTable().All() {
			if known == text {
				return int32(i)
			}
		}
		d.StringTable().Append(text)
		return int32(d.StringTable().Len() - 1)
	}
	text("")
	d.StackTable().AppendEmpty()
	d.LocationTable().AppendEmpty()
	d.FunctionTable().AppendEmpty()
	attribute := func(key string, set func(pcommon.Value)) int32 {
		a := d.AttributeTable().AppendEmpty()
		a.SetKeyStrindex(text(key))
		set(a.Value())
		return int32(d.AttributeTable().Len() - 1)
	}
	isTrue := func(v pcommon.Value) { v.SetBool(true) }
	callPaths, truncated := attribute(attributeCallPaths, isTrue), attribute(attributeTruncated, isTrue)
	threads := map[int64][]int32{0: nil}
	locations := map[string]int32{}
	rp := pd.ResourceProfiles().AppendEmpty()
	rp.Resource().Attributes().PutStr(attributeService, service)
	scope := rp.ScopeProfiles().AppendEmpty()
	kinds := [pathValues]calltree.Kind{{Type: "calls", Unit: "count"}, {Type: "errors", Unit: "count"}, {Type: "wall", Unit: "nanoseconds"}}
	var all [pathValues]pprofile.Profile
	for of, kind := range kinds {
		all[of] = scope.Profiles().AppendEmpty()
		all[of].SampleType().SetTypeStrindex(text(kind.Type))
		all[of].SampleType().SetUnitStrindex(text(kind.Unit))
		all[of].AttributeIndices().Append(callPaths)
		if random != nil {
			all[of].SetProfileID(profileID(random))
		}
		all[of].SetDurationNano(uint64(10 * time.Second))
	}
	stacks := map[string]int32{}
	keys := slices.Sorted(maps.Keys(s))
	if random != nil {
		random.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	}
	for _, key := range keys {
		path := s[key]
		name := strings.Join(path.frames, ";")
		stack, ok := stacks[name]
		if !ok {
			indices := d.StackTable().AppendEmpty().LocationIndices()
			for _, frame := range slices.Backward(path.frames) {
				if _, ok := locations[frame]; !ok {
					f := d.FunctionTable().AppendEmpty()
					f.SetNameStrindex(text(frame))
					f.SetFilenameStrindex(text(frame + ".go"))
					f.SetStartLine(7)
					d.LocationTable().AppendEmpty().Lines().AppendEmpty().SetFunctionIndex(int32(d.FunctionTable().Len() - 1))
					locations[frame] = int32(d.LocationTable().Len() - 1)
				}
				indices.Append(locations[frame])
			}
			stack = int32(d.StackTable().Len() - 1)
			stacks[name] = stack
		}
		if _, ok := threads[path.thread]; !ok {
			threads[path.thread] = []int32{
				attribute(attributeThreadID, func(v pcommon.Value) { v.SetInt(path.thread) }),
				attribute(attributeThreadName, func(v pcommon.Value) { v.SetStr(fmt.Sprint("thread ", path.thread)) }),
			}
		}
		for of, value := range path.values {
			if value == 0 {
				continue
			}
			sample := all[of].Samples().AppendEmpty()
			sample.SetStackIndex(stack)
			sample.Values().Append(value)
			sample.AttributeIndices().Append(threads[path.thread]...)
			if path.truncated {
				sample.AttributeIndices().Append(truncated)
			}
		}
	}
	return pd
}

func profileID(random *rand.Rand) (id pprofile.ProfileID) {
	binary.BigEndian.PutUint64(id[:], random.Uint64())
	return id
}

// program is a random program of some threads whose calls all end. Each call becomes a span, and
// is in the sums of the increment in which it ends.
type program struct {
	random     *rand.Rand
	now        uint64
	last       uint64 // ID
	spans      []ptrace.Span
	increments []sums
}

// call makes a call with callees below a path, and returns its time.
func (p *program) call(traceID, thread int64, parent uint64, frames []string) (took int64) {
	p.last++
	id := p.last
	p.now += 1 + p.random.Uint64N(5)
	start := p.now
	frames = append(slices.Clip(frames), fmt.Sprint("f", p.random.IntN(4)))
	callees := int64(0)
	for len(frames) < 8 && p.random.IntN(10) < 6 {
		callees += p.call(traceID, thread, id, frames)
	}
	p.now += 1 + p.random.Uint64N(5)
	took = int64(p.now - start)
	failed, truncated := p.random.IntN(5) == 0, p.random.IntN(8) == 0

	span := ptrace.NewSpan()
	span.SetTraceID([16]byte{15: byte(traceID)})
	span.SetSpanID(numbered(int(id)))
	if parent != 0 {
		span.SetParentSpanID(numbered(int(parent)))
	}
	span.SetName(frames[len(frames)-1])
	span.SetStartTimestamp(pcommon.Timestamp(start))
	span.SetEndTimestamp(pcommon.Timestamp(p.now))
	span.Attributes().PutInt(attributeThreadID, thread)
	if failed {
		span.Status().SetCode(ptrace.StatusCodeError)
	}
	if truncated {
		span.Attributes().PutStr(attributeTruncated, "break")
	}
	p.spans = append(p.spans, span)

	if p.random.IntN(20) == 0 {
		p.increments = append(p.increments, sums{})
	}
	sum := p.increments[len(p.increments)-1].of(truncated, thread, frames...)
	sum.values[pathCalls]++
	if failed {
		sum.values[pathErrors]++
	}
	sum.values[pathSelf] += took - callees
	return took
}

func newProgram(random *rand.Rand) *program {
	p := &program{random: random, now: 1000, increments: []sums{{}}}
	for range 1 + random.IntN(10) {
		p.call(random.Int64N(5), 1+random.Int64N(3), 0, nil)
	}
	return p
}

// pathNode are the values of a path.
type pathNode struct {
	calls, errors uint64
	self          int64
}

// byPath returns the values of a tree by path. Callees of a truncated call are below it as spans,
// and below the plain path in profiles. So calls, errors and self times are compared without the
// marks of callers, and totals without any.
func byPath(nodes []calltree.Node) (values map[string]pathNode, totals map[string]int64) {
	values, totals = map[string]pathNode{}, map[string]int64{}
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Function
		if n.Parent >= 0 {
			names[i] = names[n.Parent] + "/" + names[i]
		}
		totals[names[i]] += n.Total
		name := names[i] + "," + n.Mark.String()
		v := values[name]
		v.calls += n.Calls
		v.errors += n.Errors
		v.self += n.Self
		if v != (pathNode{}) {
			values[name] = v
		}
	}
	return values, totals
}

func TestProfilesOfCallPathsMakeTheTreeOfTheSpans(t *testing.T) {
	truncated := 0
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 21))
		p := newProgram(random)

		spans := newBed(t)
		random.Shuffle(len(p.spans), func(i, j int) { p.spans[i], p.spans[j] = p.spans[j], p.spans[i] })
		for rest := p.spans; len(rest) > 0; {
			n := min(len(rest), 1+random.IntN(50))
			td := ptrace.NewTraces()
			rs := td.ResourceSpans().AppendEmpty()
			rs.Resource().Attributes().PutStr(attributeService, "s")
			to := rs.ScopeSpans().AppendEmpty().Spans()
			for _, span := range rest[:n] {
				span.CopyTo(to.AppendEmpty())
			}
			require.NoError(t, spans.consumeTraces(t.Context(), td))
			rest = rest[n:]
		}

		profiles := newBed(t)
		random.Shuffle(len(p.increments), func(i, j int) { p.increments[i], p.increments[j] = p.increments[j], p.increments[i] })
		for _, increment := range p.increments {
			require.NoError(t, profiles.consumeProfiles(t.Context(), increment.profiles(random, "s")))
		}

		want, ok := spans.store.Snapshot("s", calltree.Calls)
		require.True(t, ok)
		got, ok := profiles.store.Snapshot("s", calltree.Calls)
		require.True(t, ok)
		wantValues, wantTotals := byPath(want.Nodes)
		gotValues, gotTotals := byPath(got.Nodes)
		require.Equal(t, wantValues, gotValues, "seed %d", seed)
		require.Equal(t, wantTotals, gotTotals, "seed %d", seed)
		for _, n := range got.Nodes {
			require.NotEqual(t, calltree.MissingParent, n.Mark)
			require.Equal(t, n.Function+".go", n.File)
			require.EqualValues(t, 7, n.Line)
			if n.Mark == calltree.Truncated {
				truncated++
			}
		}
		if seed%2 == 0 {
			continue
		}
		a, b := spans.store.Services()[0], profiles.store.Services()[0]
		require.Equal(t, []any{a.Calls, a.Errors, a.Threads, a.Kinds}, []any{b.Calls, b.Errors, b.Threads, b.Kinds})
		require.EqualValues(t, len(p.spans), profiles.sum(t, "path_calls"))
	}
	assert.Positive(t, truncated)
}

func TestACallerThatStillRunsIsAboveItsCallees(t *testing.T) {
	s := sums{}
	s.of(false, 0, "main", "loop", "work").values = [pathValues]int64{3, 1, 30}
	s.of(true, 0, "main", "loop", "work").values = [pathValues]int64{1, 0, 4}
	s.of(false, 0, "main", "loop", "work", "leaf").values = [pathValues]int64{6, 0, 12}
	g := newBed(t)
	require.NoError(t, g.consumeProfiles(t.Context(), s.profiles(rand.New(rand.NewPCG(1, 1)), "s")))
	snapshot, ok := g.store.Snapshot("s", calltree.Calls)
	require.True(t, ok)
	node := func(parent int32, function string, mark calltree.Mark, v ...int64) calltree.Node {
		return calltree.Node{
			Parent: parent, Function: function, File: function + ".go", Line: 7, Mark: mark,
			Calls: uint64(v[0]), Errors: uint64(v[1]), Total: v[2], Self: v[3],
		}
	}
	assert.Equal(t, []calltree.Node{
		node(-1, "main", calltree.Plain, 0, 0, 46, 0),
		node(0, "loop", calltree.Plain, 0, 0, 46, 0),
		node(1, "work", calltree.Plain, 3, 1, 42, 30),
		node(2, "leaf", calltree.Plain, 6, 0, 12, 12),
		node(1, "work", calltree.Truncated, 1, 0, 4, 4),
	}, snapshot.Nodes)
	assert.Equal(t, []calltree.Kind{calltree.Calls}, g.store.Services()[0].Kinds)
}

// A resource with many paths is folded in several pieces.
func TestManyCallPathsMakeTheWholeTree(t *testing.T) {
	const functions = 20
	s := sums{}
	for i := range functions * functions * functions {
		name := func(n int) string { return fmt.Sprint("f", n%functions) }
		s.of(false, 0, "main", name(i), name(i/functions), name(i/functions/functions)).values = [pathValues]int64{1, 1, 2}
	}
	g := newBed(t)
	require.NoError(t, g.consumeProfiles(t.Context(), s.profiles(rand.New(rand.NewPCG(1, 1)), "s")))
	require.Greater(t, len(s), 3*calltree.PathsAtOnce)
	snapshot, _ := g.store.Snapshot("s", calltree.Calls)
	require.Len(t, snapshot.Nodes, 1+functions+functions*functions+len(s))
	for i, depth := 0, make([]int, len(snapshot.Nodes)); i < len(snapshot.Nodes); i++ {
		n := snapshot.Nodes[i]
		if n.Parent >= 0 {
			depth[i] = depth[n.Parent] + 1
		}
		want := calltree.Node{
			Parent: n.Parent, Function: n.Function, File: n.Function + ".go", Line: 7,
			Total: []int64{2 * int64(len(s)), 2 * functions * functions, 2 * functions, 2}[depth[i]],
		}
		if depth[i] == 3 {
			want.Calls, want.Errors, want.Self = 1, 1, 2
		}
		require.Equal(t, want, n)
	}
	assert.EqualValues(t, len(s), g.store.Services()[0].Errors)
}

func TestFramesThatStandForSeveralPathsAreMarked(t *testing.T) {
	s := sums{}
	s.of(false, 0, "main").values = [pathValues]int64{1, 0, 10}
	s.of(false, 0, furtherPaths).values = [pathValues]int64{5, 1, 50}
	s.of(false, 0, "main", deeperCalls).values = [pathValues]int64{2, 1, 3}
	s.of(true, 0, furtherPaths, "below").values = [pathValues]int64{1, 0, 2}
	g := newBed(t)
	require.NoError(t, g.consumeProfiles(t.Context(), s.profiles(rand.New(rand.NewPCG(1, 1)), "s")))
	snapshot, _ := g.store.Snapshot("s", calltree.Calls)
	assert.Equal(t, []calltree.Node{
		{Parent: -1, Function: "(folded: small paths)", Mark: calltree.Folded, Calls: 6, Errors: 1, Total: 52, Self: 52},
		{Parent: -1, Function: "main", File: "main.go", Line: 7, Calls: 1, Total: 13, Self: 10},
		{Parent: 1, Function: "(deeper calls)", Mark: calltree.Deep, Calls: 2, Errors: 1, Total: 3, Self: 3},
	}, snapshot.Nodes)
	assert.Zero(t, g.store.Counters().CutSamples)
}

// The message of an interval arrives again if another exporter of the pipeline refused it.
func TestAProfileOfCallPathsThatArrivesAgainIsIgnored(t *testing.T) {
	s := sums{}
	s.of(false, 0, "main").values = [pathValues]int64{2, 1, 10}
	random := rand.New(rand.NewPCG(1, 1))
	g, first := newBed(t), s.profiles(random, "s")
	for range 3 {
		require.NoError(t, g.consumeProfiles(t.Context(), first))
	}
	others := func(number int) {
		for range number {
			g.recent.isFirst(profileID(random), pathCalls)
		}
	}
	others(maxRecentProfiles)
	require.NoError(t, g.consumeProfiles(t.Context(), first))
	others(2 * maxRecentProfiles)
	require.NoError(t, g.consumeProfiles(t.Context(), s.profiles(random, "s")))
	for range 2 {
		require.NoError(t, g.consumeProfiles(t.Context(), s.profiles(nil, "s")))
	}
	snapshot, _ := g.store.Snapshot("s", calltree.Calls)
	assert.Equal(t, []calltree.Node{{Parent: -1, Function: "main", File: "main.go", Line: 7, Calls: 8, Errors: 4, Total: 40, Self: 40}}, snapshot.Nodes)
	assert.EqualValues(t, 9, g.sum(t, "duplicate_profiles"))
	assert.LessOrEqual(t, len(g.recent.newer)+len(g.recent.older), 2*maxRecentProfiles)
}

func TestOnlyMarkedProfilesOfKnownKindsAreCallPaths(t *testing.T) {
	s := sums{}
	s.of(false, 0, "main").values = [pathValues]int64{2, 1, 10}
	pd := s.profiles(rand.New(rand.NewPCG(1, 1)), "s")
	profiles := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles()
	profiles.At(0).AttributeIndices().FromRaw([]int32{-1, 99})
	pd.Dictionary().StringTable().SetAt(int(profiles.At(1).SampleType().TypeStrindex()), "other")
	g := newBed(t)
	require.NoError(t, g.consumeProfiles(t.Context(), pd))
	assert.Equal(t, []calltree.Kind{calltree.Calls, {Type: "calls", Unit: "count"}, {Type: "other", Unit: "count"}}, g.store.Services()[0].Kinds)
	snapshot, _ := g.store.Snapshot("s", calltree.Calls)
	require.Len(t, snapshot.Nodes, 1)
	assert.Zero(t, snapshot.Nodes[0].Calls)
	assert.EqualValues(t, 10, snapshot.Nodes[0].Total)
}

// A sender chooses all numbers.
func TestValuesOfCallPathsStayInTheirRange(t *testing.T) {
	s := sums{}
	s.of(false, 0, "main").values = [pathValues]int64{math.MaxInt64, math.MaxInt64, math.MaxInt64}
	s.of(false, 0, "main", "a").values = [pathValues]int64{math.MaxInt64, math.MinInt64, math.MaxInt64}
	s.of(false, 0, "main", "b").values = [pathValues]int64{-1, -1, -1}
	random := rand.New(rand.NewPCG(1, 1))
	g := newBed(t)
	for range 3 {
		require.NoError(t, g.consumeProfiles(t.Context(), s.profiles(random, "s")))
	}
	snapshot, _ := g.store.Snapshot("s", calltree.Calls)
	assert.Equal(t, []calltree.Node{
		{Parent: -1, Function: "main", File: "main.go", Line: 7, Calls: math.MaxUint64, Errors: math.MaxUint64, Total: math.MaxInt64, Self: math.MaxInt64},
		{Parent: 0, Function: "a", File: "a.go", Line: 7, Calls: math.MaxUint64, Total: math.MaxInt64, Self: math.MaxInt64},
	}, snapshot.Nodes)
	assert.EqualValues(t, uint64(math.MaxUint64), g.store.Services()[0].Calls)
}

// Deep stacks are cut as spans are, and stacks of a message with too many frames sooner.
func TestTheFramesOfCallPathsAreBounded(t *testing.T) {
	deep := func(depth int) []string {
		frames := make([]string, depth)
		for i := range frames {
			frames[i] = fmt.Sprint("f", i%3)
		}
		return frames
	}
	s := sums{}
	for _, depth := range []int{calltree.MaxDepth - 1, calltree.MaxDepth, 3 * calltree.MaxDepth} {
		s.of(false, 0, deep(depth)...).values = [pathValues]int64{1, 0, int64(depth)}
	}
	random := rand.New(rand.NewPCG(1, 1))
	g := newBed(t)
	require.NoError(t, g.consumeProfiles(t.Context(), s.profiles(random, "s")))
	snapshot, _ := g.store.Snapshot("s", calltree.Calls)
	require.Len(t, snapshot.Nodes, calltree.MaxDepth)
	last := snapshot.Nodes[calltree.MaxDepth-2:]
	assert.EqualValues(t, 1, last[0].Calls)
	assert.Equal(t, calltree.Node{Parent: calltree.MaxDepth - 2, Function: "(deeper calls)", Mark: calltree.Deep, Calls: 2, Total: 4 * calltree.MaxDepth, Self: 4 * calltree.MaxDepth}, last[1])
	assert.EqualValues(t, 5*calltree.MaxDepth-1, snapshot.Nodes[0].Total)

	// One stack in many services.
	s = sums{}
	s.of(false, 0, deep(900)...).values = [pathValues]int64{1, 0, 1}
	pd := s.profiles(random, "s")
	const services = 300
	for i := range services - 1 {
		rp := pd.ResourceProfiles().AppendEmpty()
		pd.ResourceProfiles().At(0).CopyTo(rp)
		rp.Resource().Attributes().PutStr(attributeService, fmt.Sprint(i))
		for _, profile := range rp.ScopeProfiles().At(0).Profiles().All() {
			profile.SetProfileID(profileID(random))
		}
	}
	// A stack without frames, and one that is not in the table.
	for _, index := range []int32{0, -7} {
		pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).Samples().At(0).CopyTo(
			pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).Samples().AppendEmpty())
		samples := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).Samples()
		samples.At(samples.Len() - 1).SetStackIndex(index)
	}
	g = newBed(t)
	require.NoError(t, g.consumeProfiles(t.Context(), pd))
	cut := g.store.Counters().CutSamples
	assert.Greater(t, cut, uint64(100))
	nodes := 0
	for _, service := range g.store.Services() {
		snapshot, _ := g.store.Snapshot(service.Name, calltree.Calls)
		nodes += len(snapshot.Nodes)
		require.EqualValues(t, 1, snapshot.Nodes[0].Total)
	}
	assert.LessOrEqual(t, nodes, someFrames+framesOfByte*sizeOf(pd)+services*(leastFrames+1)+1)
	assert.EqualValues(t, services+2, g.store.Counters().Calls)
}

func TestAServiceWhoseCallsCountTwiceIsLoggedOnce(t *testing.T) {
	s := sums{}
	s.of(false, 0, "main").values = [pathValues]int64{1, 0, 10}
	random := rand.New(rand.NewPCG(1, 1))
	for _, count := range []bool{true, false} {
		g := newBed(t, func(c *Config) { c.CountSpans = count })
		core, logged := observer.New(zapcore.WarnLevel)
		g.set.Logger = zap.New(core)
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr(attributeService, "s")
		span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		span.SetName("main")
		span.SetSpanID([8]byte{1})
		span.SetTraceID([16]byte{1})
		for range 2 {
			require.NoError(t, g.consumeTraces(t.Context(), td))
			require.NoError(t, g.consumeProfiles(t.Context(), s.profiles(random, "other")))
		}
		assert.Zero(t, logged.Len())
		for range 3 {
			require.NoError(t, g.consumeProfiles(t.Context(), s.profiles(random, "s")))
			require.NoError(t, g.consumeTraces(t.Context(), td))
		}
		snapshot, ok := g.store.Snapshot("s", calltree.Calls)
		require.True(t, ok)
		assert.Len(t, g.store.Traces("s"), 1, "the trace is kept once")
		assert.EqualValues(t, 4, g.sum(t, "duplicate_spans"))
		if !count {
			assert.Zero(t, logged.Len())
			assert.EqualValues(t, 3, snapshot.Nodes[0].Calls)
			assert.EqualValues(t, 3, g.store.Services()[1].Calls)
			assert.EqualValues(t, 1, g.sum(t, "uncounted_spans"))
			assert.Zero(t, g.sum(t, "spans"))
			continue
		}
		require.Equal(t, 1, logged.Len())
		assert.Contains(t, logged.All()[0].Message, "set count_spans to false")
		assert.EqualValues(t, 4, snapshot.Nodes[0].Calls)
		assert.True(t, g.store.Services()[1].CountedTwice)
	}
}
