// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pathprofiles

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/callbraid/callbraid/connector/stackpairingconnector/internal/origin"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/callsum"
	"github.com/callbraid/callbraid/internal/componentkit/schema"
	"github.com/callbraid/callbraid/internal/testkit/cputime"
	"github.com/callbraid/callbraid/internal/testkit/heapsize"
	"github.com/callbraid/callbraid/internal/testkit/profiletest"
)

// update writes the golden file again: go test -run Golden -update. testdata/README.md explains it.
var update = flag.Bool("update", false, "write the golden file again")

const (
	begin pcommon.Timestamp = 1_700_000_000_000_000_000
	end   pcommon.Timestamp = begin + 60_000_000_000

	unbounded = 1 << 30
)

// growthOf returns an empty growth whose profiles have the IDs 1, 2 and so on.
func growthOf(maxPaths, maxMessageBytes int) *Growth {
	id := uint64(0)
	return NewGrowth(Settings{MaxPaths: maxPaths, MaxMessageBytes: maxMessageBytes, NewID: func() (of [16]byte) {
		id++
		binary.BigEndian.PutUint64(of[8:], id)
		return of
	}})
}

// originOf returns the origin of a service. The order of its attributes is random.
func originOf(service string) *origin.Origin {
	r, scope := pcommon.NewResource(), pcommon.NewInstrumentationScope()
	attributes := [][2]string{{"service.name", service}, {"service.instance.id", "1"}, {"process.runtime.name", "jvm"}}
	rand.Shuffle(len(attributes), func(i, j int) { attributes[i], attributes[j] = attributes[j], attributes[i] })
	for _, a := range attributes {
		r.Attributes().PutStr(a[0], a[1])
	}
	scope.SetName("callbraid")
	return origin.New(r, schema.URL, scope, schema.URL)
}

// tree makes the paths of an increment.
type tree struct{ callsum.Increment }

func newTree(functions ...string) *tree {
	t := &tree{}
	t.Paths = []callsum.Path{{Kind: callsum.PathTop}}
	for _, name := range functions {
		t.Functions = append(t.Functions, &callevent.Function{Qualified: name, File: name + ".java", Line: 7})
	}
	return t
}

// path adds a path, and returns its index.
func (t *tree) path(parent, label uint32, kind callsum.PathKind, v callsum.PathValues) uint32 {
	t.Paths = append(t.Paths, callsum.Path{Parent: parent, Label: label, Kind: kind})
	added := uint32(len(t.Paths) - 1)
	if v != (callsum.PathValues{}) {
		t.Grown = append(t.Grown, callsum.PathGrowth{Path: added, PathValues: v})
	}
	return added
}

func (t *tree) call(parent, function uint32, calls, errors uint64, self int64) uint32 {
	return t.path(parent, function, callsum.PathFunction, callsum.PathValues{Calls: calls, Errors: errors, Self: self})
}

// line is a sample as text: its service, stack and attributes.
func line(service, stack, attributes string) string {
	return fmt.Sprintf("%s: %s {%s}", service, stack, attributes)
}

// model adds the growth of a stream to sums by line, without any bound.
func (t *tree) model(service string, sums map[string]callsum.PathValues) {
	for _, grown := range t.Grown {
		n := grown.Path
		var stack, attributes []string
		for at := n; at != 0; at = t.Paths[at].Parent {
			switch path := t.Paths[at]; path.Kind {
			case callsum.PathFunction, callsum.PathTruncated:
				f := t.Functions[path.Label]
				name := f.Qualified
				if name == "" {
					name = noFunction
				}
				stack = append(stack, fmt.Sprintf("%s@%s:%d", name, f.File, f.Line))
			case callsum.PathLane:
				lane := t.Lanes[path.Label]
				if id, is := callevent.ThreadID(lane.ID); is {
					attributes = append(attributes, fmt.Sprint("thread.id=", id))
				}
				if lane.Name != "" {
					attributes = append(attributes, "thread.name="+lane.Name)
				}
			case callsum.PathRest:
				stack = append(stack, furtherPaths+"@:0")
			case callsum.PathTop:
			}
		}
		if t.Paths[n].Kind == callsum.PathTruncated {
			attributes = append(attributes, "callbraid.truncated=true")
		}
		key := line(service, strings.Join(stack, " < "), strings.Join(attributes, ", "))
		addTo(sums, key, grown.PathValues)
	}
}

func addTo(sums map[string]callsum.PathValues, key string, v callsum.PathValues) {
	s := sums[key]
	sums[key] = callsum.PathValues{Calls: s.Calls + v.Calls, Errors: s.Errors + v.Errors, Self: s.Self + v.Self}
}

// messagesOf returns the messages of a growth as a receiver reads them.
func messagesOf(t testing.TB, g *Growth) (all []pprofile.Profiles) {
	t.Helper()
	for profiles := range g.Messages(begin, end) {
		data, err := new(pprofile.ProtoMarshaler).MarshalProfiles(profiles)
		require.NoError(t, err)
		samples := 0
		for _, rp := range profiles.ResourceProfiles().All() {
			samples = max(samples, rp.ScopeProfiles().At(0).Profiles().At(0).Samples().Len())
		}
		if samples > 1 {
			require.LessOrEqual(t, len(data), g.settings.MaxMessageBytes, "bytes of a message")
		}
		profiles, err = new(pprofile.ProtoUnmarshaler).UnmarshalProfiles(data)
		require.NoError(t, err)
		all = append(all, profiles)
	}
	return all
}

// sumsOf reads the samples of messages, without code of this package.
func sumsOf(t testing.TB, all []pprofile.Profiles) map[string]callsum.PathValues {
	t.Helper()
	sums := map[string]callsum.PathValues{}
	for _, profiles := range all {
		d := profiles.Dictionary()
		text := func(i int32) string { return d.StringTable().At(int(i)) }
		for _, rp := range profiles.ResourceProfiles().All() {
			service := ""
			if name, ok := rp.Resource().Attributes().Get("service.name"); ok {
				service = name.Str()
			}
			for _, p := range rp.ScopeProfiles().At(0).Profiles().All() {
				assert.Equal(t, []any{begin, uint64(end - begin)}, []any{p.Time(), p.DurationNano()})
				mark := d.AttributeTable().At(int(p.AttributeIndices().At(0)))
				assert.Equal(t, "callbraid.call_paths true", text(mark.KeyStrindex())+" "+mark.Value().AsString())
				for _, s := range p.Samples().All() {
					var stack, attributes []string
					for _, l := range d.StackTable().At(int(s.StackIndex())).LocationIndices().All() {
						f := d.FunctionTable().At(int(d.LocationTable().At(int(l)).Lines().At(0).FunctionIndex()))
						assert.Equal(t, f.NameStrindex(), f.SystemNameStrindex())
						stack = append(stack, fmt.Sprintf("%s@%s:%d", text(f.NameStrindex()), text(f.FilenameStrindex()), f.StartLine()))
					}
					for _, i := range s.AttributeIndices().All() {
						a := d.AttributeTable().At(int(i))
						attributes = append(attributes, text(a.KeyStrindex())+"="+a.Value().AsString())
					}
					value := s.Values().At(0)
					assert.Positive(t, value)
					var v callsum.PathValues
					switch kind := text(p.SampleType().TypeStrindex()) + "/" + text(p.SampleType().UnitStrindex()); kind {
					case "calls/count":
						v.Calls = uint64(value)
					case "errors/count":
						v.Errors = uint64(value)
					case "wall/nanoseconds":
						v.Self = value
					default:
						assert.Fail(t, "another kind", kind)
					}
					addTo(sums, line(service, strings.Join(stack, " < "), strings.Join(attributes, ", ")), v)
				}
			}
		}
	}
	return sums
}

// totals adds up sums by service.
func totals(sums map[string]callsum.PathValues) map[string]callsum.PathValues {
	all := map[string]callsum.PathValues{}
	for key, v := range sums {
		service, _, _ := strings.Cut(key, ":")
		addTo(all, service, v)
	}
	return all
}

// randomTree returns an increment of paths of a few functions, some of which have the same name.
func randomTree(random *rand.Rand) *tree {
	t := newTree()
	for range 1 + random.IntN(12) {
		t.Functions = append(t.Functions, &callevent.Function{
			Qualified: []string{"a.B.c", "a.B.d", "x", "", "ünï", strings.Repeat("long", 30)}[random.IntN(6)],
			File:      []string{"", "B.java", "C.java"}[random.IntN(3)], Line: uint32(random.IntN(2)),
		})
	}
	t.Lanes = []callevent.Lane{{ID: 1, Name: "main"}, {ID: 2}, {ID: callevent.LaneManaged | 1, Name: "main"}, {ID: callevent.LaneKey | 5}, {ID: 9, Name: "wörker"}}
	parents := []uint32{0}
	for range random.IntN(5) {
		parents = append(parents, t.path(0, uint32(random.IntN(len(t.Lanes))), callsum.PathLane, callsum.PathValues{}))
	}
	if random.IntN(3) == 0 {
		t.path(0, 0, callsum.PathRest, callsum.PathValues{Calls: 5, Self: 50})
	}
	for range random.IntN(60) {
		v := callsum.PathValues{}
		if random.IntN(3) > 0 {
			v.Calls = 1 + random.Uint64N(300)
			v.Errors = v.Calls / (1 + random.Uint64N(400))
			v.Self = random.Int64N(1 << (1 + random.IntN(60)))
		}
		parent, function := parents[random.IntN(len(parents))], uint32(random.IntN(len(t.Functions)))
		if random.IntN(6) == 0 {
			t.path(parent, function, callsum.PathTruncated, v)
		} else {
			parents = append(parents, t.path(parent, function, callsum.PathFunction, v))
		}
	}
	return t
}

func TestProfilesHaveTheSumsOfASlowModel(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		g, want := growthOf(unbounded, 1000+random.IntN(8000)), map[string]callsum.PathValues{}
		for range 1 + random.IntN(6) {
			service := fmt.Sprint("service", random.IntN(3))
			tree := randomTree(random)
			tree.model(service, want)
			g.Add(originOf(service), &tree.Increment)
		}
		all := messagesOf(t, g)
		for _, profiles := range all {
			profiletest.CheckValid(t, profiles)
		}
		require.Equal(t, want, sumsOf(t, all), "seed %d", seed)
		require.Equal(t, len(want), g.samples, "seed %d: each stack has one sample", seed)
	}
}

func TestPathsWithoutRoomAreSummedInOneFrame(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 2))
		maxPaths := 1 + random.IntN(40)
		g, want := growthOf(maxPaths, unbounded), map[string]callsum.PathValues{}
		folded := uint64(0)
		g.settings.Folded = func(paths, bytes uint64) {
			require.Zero(t, bytes)
			folded += paths
		}
		for range 1 + random.IntN(6) {
			service := fmt.Sprint("service", random.IntN(3))
			tree := randomTree(random)
			tree.model(service, want)
			g.Add(originOf(service), &tree.Increment)
		}
		got := sumsOf(t, messagesOf(t, g))
		if maxPaths < 3 {
			// Services without room share an origin.
			require.Equal(t, values(totals(want)), values(totals(got)), "seed %d", seed)
		} else {
			require.Equal(t, totals(want), totals(got), "seed %d", seed)
		}
		require.Equal(t, without(got), folded, "seed %d", seed)
		require.LessOrEqual(t, len(g.nodes), 2+maxPaths)
		require.LessOrEqual(t, g.samples, maxPaths+len(g.origins))
		require.LessOrEqual(t, len(g.origins), maxPaths+1)
		require.LessOrEqual(t, len(g.functions), int(firstFunction)+maxPaths)
		for key, v := range got {
			if !strings.Contains(key, furtherPaths) {
				require.LessOrEqual(t, v.Calls, want[key].Calls, "seed %d: a path has no calls of another: %s", seed, key)
			}
		}
	}
}

// without returns the calls of paths and of services without room.
func without(got map[string]callsum.PathValues) (calls uint64) {
	for key, v := range got {
		if strings.HasPrefix(key, ":") || strings.Contains(key, furtherPaths) {
			calls += v.Calls
		}
	}
	return calls
}

// A program has at most half of what all others leave, so there is always room for another one.
func TestAProgramLeavesRoomForOthers(t *testing.T) {
	for name, settings := range map[string]Settings{
		"paths": {MaxPaths: 64, MaxMessageBytes: unbounded},
		"bytes": {MaxPaths: unbounded, MaxBytes: 64 << 10, MaxMessageBytes: unbounded},
	} {
		t.Run(name, func(t *testing.T) {
			settings.NewID = growthOf(1, 1).settings.NewID
			g := NewGrowth(settings)
			for service, functions := range []int{1000, 1000, 3} {
				for n := range functions {
					tree := newTree(fmt.Sprint("f", service, n))
					tree.call(0, 0, 1, 0, 1)
					g.Add(originOf(fmt.Sprint("service", service/2)), &tree.Increment)
				}
				g.merge()
			}
			got := sumsOf(t, messagesOf(t, g))
			assert.EqualValues(t, 2000, callsOf(got, "service0"))
			assert.Positive(t, got[line("service0", furtherPaths+"@:0", "")].Calls)
			assert.EqualValues(t, 3, callsOf(got, "service1"))
			assert.Zero(t, got[line("service1", furtherPaths+"@:0", "")].Calls)
		})
	}
}

func callsOf(all map[string]callsum.PathValues, service string) (calls uint64) {
	for key, v := range all {
		if strings.HasPrefix(key, service) {
			calls += v.Calls
		}
	}
	return calls
}

func TestThreadsWithoutRoomAreSummedInOneFrame(t *testing.T) {
	tree := newTree("f", "g")
	for i := range uint32(20) {
		tree.Lanes = append(tree.Lanes, callevent.Lane{ID: uint64(i)})
		f := tree.call(tree.path(0, i, callsum.PathLane, callsum.PathValues{}), 0, 1, 0, 1)
		tree.call(f, 1, 1, 0, 1)
	}
	g := growthOf(12, unbounded)
	g.Add(originOf("a"), &tree.Increment)
	got := sumsOf(t, messagesOf(t, g))
	assert.Len(t, g.lanes, 13)
	assert.Len(t, got, 7)
	assert.EqualValues(t, 34, got[line("a", furtherPaths+"@:0", "")].Calls)
}

func TestAFrameOfFurtherPathsHasNoCallees(t *testing.T) {
	tree := newTree("f")
	rest := tree.path(0, 0, callsum.PathRest, callsum.PathValues{Calls: 1, Self: 1})
	tree.call(rest, 0, 2, 1, 3)
	g := growthOf(unbounded, unbounded)
	g.Add(originOf("a"), &tree.Increment)
	want := map[string]callsum.PathValues{line("a", furtherPaths+"@:0", ""): {Calls: 3, Errors: 1, Self: 4}}
	assert.Equal(t, want, sumsOf(t, messagesOf(t, g)))
}

// values is the sum of all.
func values(of map[string]callsum.PathValues) callsum.PathValues {
	sum := map[string]callsum.PathValues{}
	for _, v := range of {
		addTo(sum, "", v)
	}
	return sum[""]
}

func TestCallsBelowTheDeepestFrameAreSummedThere(t *testing.T) {
	const depth = 3 * maxFrames
	tree, parent := newTree("f", "g"), uint32(0)
	for i := range uint32(depth) {
		parent = tree.call(parent, i%2, 1, 0, 10)
	}
	g := growthOf(unbounded, unbounded)
	g.Add(originOf("deep"), &tree.Increment)
	all := messagesOf(t, g)
	profiletest.CheckValid(t, all[0])
	d := all[0].Dictionary()
	leafOf := map[int]string{}
	calls, callsAt := int64(0), map[int]int64{}
	for _, sample := range all[0].ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).Samples().All() {
		stack := d.StackTable().At(int(sample.StackIndex())).LocationIndices()
		function := d.FunctionTable().At(int(d.LocationTable().At(int(stack.At(0))).Lines().At(0).FunctionIndex()))
		leafOf[stack.Len()] = d.StringTable().At(int(function.NameStrindex()))
		callsAt[stack.Len()] += sample.Values().At(0)
		calls += sample.Values().At(0)
	}
	assert.Len(t, leafOf, maxFrames)
	assert.EqualValues(t, depth, calls)
	assert.Equal(t, deeperCalls, leafOf[maxFrames])
	assert.EqualValues(t, depth-maxFrames+1, callsAt[maxFrames])
	assert.Equal(t, "f", leafOf[maxFrames-1])
}

func TestOnlyPathsThatGrewAreInAMessage(t *testing.T) {
	tree := newTree("main", "idle", "busy", "left")
	main := tree.call(0, 0, 0, 0, 0)
	tree.call(tree.call(main, 1, 0, 0, 0), 3, 0, 0, 0)
	tree.call(main, 2, 2, 0, 30)
	g := growthOf(unbounded, unbounded)
	g.Add(originOf("a"), &tree.Increment)
	all := messagesOf(t, g)
	assert.Len(t, g.nodes, 3, "the top, main and busy")
	require.Len(t, all, 1)
	assert.Equal(t, 3, all[0].Dictionary().FunctionTable().Len(), "none, main and busy")
	assert.Equal(t, map[string]callsum.PathValues{line("a", "busy@busy.java:7 < main@main.java:7", ""): {Calls: 2, Self: 30}}, sumsOf(t, all))
}

// A program that defines functions all the time makes its stream forget names, and each time its sums
// are added.
func TestIncrementsDoNotPileUp(t *testing.T) {
	g, most := growthOf(100, unbounded), 0
	for range 1000 {
		tree := newTree("f")
		for range 60 {
			tree.call(0, 0, 1, 0, 1)
		}
		g.Add(originOf("a"), &tree.Increment)
		most = max(most, g.Bytes())
	}
	assert.Less(t, most, 40_000)
	assert.EqualValues(t, 60_000, sumsOf(t, messagesOf(t, g))[line("a", "f@f.java:7", "")].Calls)
}

func TestNamesThatIncrementsShareCountOnce(t *testing.T) {
	g, from, tree := growthOf(unbounded, unbounded), originOf("a"), newTree(strings.Repeat("f", 1000))
	tree.Lanes = []callevent.Lane{{ID: 1, Name: strings.Repeat("t", 1000)}}
	tree.call(0, 0, 1, 0, 1)
	added := func() int {
		before := g.addedBytes
		g.Add(from, &tree.Increment)
		return g.addedBytes - before
	}
	first := added()
	assert.GreaterOrEqual(t, first, 3300+from.Bytes, "the origin counts too")
	assert.Less(t, added(), 1000)
	tree.Functions = newTree(strings.Repeat("g", 1000)).Functions
	assert.Greater(t, added(), 1000, "the stream forgot its names")
	g.merge()
	assert.Equal(t, first, added(), "nothing has the names any more")
}

func TestPathsHaveABoundInBytes(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 4))
		g, want := growthOf(unbounded, unbounded), map[string]callsum.PathValues{}
		folded := uint64(0)
		g.settings.MaxBytes, g.settings.Folded = 40_000, func(paths, bytes uint64) {
			require.Zero(t, paths)
			folded += bytes
		}
		for n := range 400 {
			tree := newTree(fmt.Sprint(n, strings.Repeat("f", random.IntN(100))), "g")
			tree.Lanes = append(tree.Lanes, callevent.Lane{ID: uint64(random.IntN(50)), Name: "t"})
			lane := tree.path(0, 0, callsum.PathLane, callsum.PathValues{})
			tree.call(tree.call(lane, 0, 1, 0, 5), 1, 2, 1, 7)
			service := fmt.Sprint("service", random.IntN(40))
			tree.model(service, want)
			g.Add(originOf(service), &tree.Increment)
			require.LessOrEqual(t, g.Bytes(), g.settings.MaxBytes+5_000, "seed %d", seed)
		}
		got := sumsOf(t, messagesOf(t, g))
		require.Equal(t, values(totals(want)), values(totals(got)), "seed %d: each call counts", seed)
		// The sample of paths without room counts twice.
		require.LessOrEqual(t, g.merged(), g.settings.MaxBytes-g.settings.MaxBytes/4+1000+(bytesOfSample+bytesOfEntry)*len(g.origins), "seed %d", seed)
		require.Less(t, len(got), len(want))
		require.Equal(t, without(got), folded, "seed %d", seed)
	}
}

func TestAGrowthWithoutCallsHasNoMessage(t *testing.T) {
	g := growthOf(unbounded, unbounded)
	g.Add(originOf("a"), &newTree("f").Increment)
	g.Add(originOf("a"), &callsum.Increment{})
	assert.Empty(t, messagesOf(t, g))
}

// A message that cannot hold a single stack has only that one.
func TestAStackWithMoreBytesThanAMessageIsAMessageByItself(t *testing.T) {
	tree := newTree(strings.Repeat("x", 5000), "f")
	long := tree.call(0, 0, 1, 1, 1)
	tree.call(long, 1, 1, 0, 1)
	tree.call(0, 1, 1, 0, 1)
	g := growthOf(unbounded, 3000)
	g.Add(originOf("a"), &tree.Increment)
	all, want := messagesOf(t, g), map[string]callsum.PathValues{}
	tree.model("a", want)
	assert.Len(t, all, 3)
	assert.Equal(t, want, sumsOf(t, all))
}

func TestGolden(t *testing.T) {
	tree := newTree("shop.Main.main", "shop.Cart.total", "shop.Tax.of")
	tree.Lanes = []callevent.Lane{{ID: 17, Name: "main"}}
	lane := tree.path(0, 0, callsum.PathLane, callsum.PathValues{})
	main := tree.call(lane, 0, 0, 0, 0)
	total := tree.call(main, 1, 3, 0, 4000)
	tree.call(total, 2, 9, 2, 900)
	tree.path(main, 1, callsum.PathTruncated, callsum.PathValues{Calls: 1, Self: 50})
	g := growthOf(unbounded, unbounded)
	r := pcommon.NewResource()
	r.Attributes().PutStr("service.name", "shop")
	g.Add(origin.New(r, schema.URL, pcommon.NewInstrumentationScope(), schema.URL), &tree.Increment)
	for profiles := range g.Messages(begin, end) {
		profiletest.CheckValid(t, profiles)
		data, err := new(pprofile.JSONMarshaler).MarshalProfiles(profiles)
		require.NoError(t, err)
		var text bytes.Buffer
		require.NoError(t, json.Indent(&text, data, "", "  "))
		text.WriteByte('\n')
		file := filepath.Join("testdata", "golden.json")
		if *update {
			require.NoError(t, os.WriteFile(file, text.Bytes(), 0o600))
		}
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, string(want), text.String())
	}
}

// Names of batches are valid UTF-8 and have a bound, as callevent.Name makes them.
func FuzzNames(f *testing.F) {
	f.Add([]byte("a.B.c"), []byte("B.java"), []byte("main"), uint32(3), uint64(1))
	f.Add([]byte(""), []byte(""), []byte(""), uint32(0), callevent.LaneKey)
	f.Add([]byte("\xff\x00\"\n"), []byte("calls"), []byte("thread.id"), uint32(1<<32-1), callevent.LaneManaged)
	f.Add([]byte(furtherPaths), []byte(""), []byte("é"), uint32(0), uint64(1<<62-1))
	f.Fuzz(func(t *testing.T, function, file, thread []byte, number uint32, id uint64) {
		tree := newTree("f")
		tree.Functions = append(tree.Functions, &callevent.Function{Qualified: callevent.Name(function), File: callevent.Name(file), Line: number})
		tree.Lanes = []callevent.Lane{{ID: id, Name: callevent.Name(thread)}}
		lane := tree.path(0, 0, callsum.PathLane, callsum.PathValues{})
		named := tree.call(lane, 1, 1, 1, 1)
		tree.path(tree.call(named, 0, 1, 0, 0), 1, callsum.PathTruncated, callsum.PathValues{Calls: 1})
		tree.path(0, 0, callsum.PathRest, callsum.PathValues{Calls: 1})
		g, want := growthOf(unbounded, unbounded), map[string]callsum.PathValues{}
		g.Add(originOf("a"), &tree.Increment)
		tree.model("a", want)
		all := messagesOf(t, g)
		if string(function) != furtherPaths {
			profiletest.CheckValid(t, all[0])
		}
		assert.Equal(t, want, sumsOf(t, all))
	})
}

// deepTree returns so many paths of a depth: chains that part halfway.
func deepTree(paths, depth, functions int) *tree {
	random, t := rand.New(rand.NewPCG(1, 1)), newTree()
	for i := range functions {
		t.Functions = append(t.Functions, &callevent.Function{
			Qualified: fmt.Sprintf("org.example.project.module%d.ClassOfModule%d.method%d", i%100, i%1000, i),
			File:      fmt.Sprintf("ClassOfModule%d.java", i%1000), Line: uint32(i % 900),
		})
	}
	level := []uint32{0}
	for range depth - 1 {
		level = []uint32{t.call(level[0], uint32(random.IntN(functions)), 1, 0, 1)}
	}
	for len(t.Paths) <= paths {
		t.call(level[0], uint32(len(t.Paths)%functions), 1+random.Uint64N(1000), uint64(random.IntN(2)), random.Int64N(1<<40))
		if random.IntN(100) == 0 {
			level[0] = t.Paths[level[0]].Parent
			level[0] = t.call(level[0], uint32(random.IntN(functions)), 1, 0, 5)
		}
	}
	return t
}

func TestMessagesAreNearlyFull(t *testing.T) {
	const most = 1 << 20
	g := growthOf(unbounded, most)
	g.Add(originOf("a"), &deepTree(30_000, 30, 10_000).Increment)
	all := messagesOf(t, g)
	require.Greater(t, len(all), 2)
	for _, profiles := range all[:len(all)-1] {
		data, err := new(pprofile.ProtoMarshaler).MarshalProfiles(profiles)
		require.NoError(t, err)
		assert.Greater(t, len(data), most*3/4)
	}
}

func TestAFunctionCountsOnceInTheSizeOfARecursion(t *testing.T) {
	tree, parent := newTree(strings.Repeat("x", 2000)), uint32(0)
	for range 100 {
		parent = tree.call(parent, 0, 0, 0, 0)
	}
	tree.call(parent, 0, 1, 0, 1)
	tree.call(0, 0, 1, 0, 1)
	g := growthOf(unbounded, 100_000)
	g.Add(originOf("a"), &tree.Increment)
	assert.Len(t, messagesOf(t, g), 1)
}

// counted is what a growth counts as its memory; nil: nothing.
func counted(g *Growth) int {
	if g == nil {
		return 0
	}
	return g.Bytes()
}

func TestBytesAreAboutTheMemory(t *testing.T) {
	tree := deepTree(50_000, 30, 50_000)
	for i := range tree.Functions {
		tree.Functions[i] = &callevent.Function{Qualified: "f", Line: uint32(i)}
	}
	var g *Growth
	heapsize.AssertCounted(t, func() int { return counted(g) }, func() {
		g = growthOf(unbounded, unbounded)
		g.Add(originOf("a"), &tree.Increment)
		g.merge()
	}, 0.3)
	runtime.KeepAlive(tree)
}

// Memory is reserved for what an increment can need, and not more than the growth may have.
func TestABoundedGrowthHoldsWhatItCounts(t *testing.T) {
	for _, most := range []int{8 << 20, 64 << 20} {
		t.Run(fmt.Sprint(most>>20, " MiB"), func(t *testing.T) {
			tree := deepTree(200_000, 2, 200_000)
			var g *Growth
			heapsize.AssertCounted(t, func() int { return counted(g) }, func() {
				g = growthOf(unbounded, unbounded)
				g.settings.MaxBytes, g.settings.Folded = most, func(uint64, uint64) {}
				g.Add(originOf("a"), &tree.Increment)
				g.merge()
			}, 0.3)
			runtime.KeepAlive(tree)
		})
	}
}

// A message of few stacks holds no room for all nodes. The connector counts four bytes for each byte of a message.
func TestAMessageOfFewStacksIsSmall(t *testing.T) {
	tree := newTree()
	for chain := range uint32(100) {
		tree.Functions = append(tree.Functions, &callevent.Function{Qualified: fmt.Sprint("f", chain)})
		path := uint32(0)
		for range 900 {
			path = tree.path(path, chain, callsum.PathFunction, callsum.PathValues{})
		}
		tree.call(path, chain, 1, 0, 5)
	}
	g := growthOf(unbounded, 1<<20)
	g.Add(originOf("a"), &tree.Increment)
	g.merge()
	var held []pprofile.Profiles
	size := func() (bytes int) {
		for _, message := range held {
			bytes += 4 * new(pprofile.ProtoMarshaler).ProfilesSize(message)
		}
		return bytes
	}
	heapsize.AssertCounted(t, size, func() { held = slices.Collect(g.Messages(begin, end)) }, 0.3)
	runtime.KeepAlive(tree)
	runtime.KeepAlive(g)
}

// The cost of an interval: adding 100,000 paths that grew, and making all messages.
func BenchmarkInterval(b *testing.B) {
	for _, depth := range []int{30, 300} {
		b.Run(fmt.Sprint("depth ", depth), func(b *testing.B) {
			tree, from := deepTree(100_000, depth, 20_000), originOf("a")
			interval := func(each func(pprofile.Profiles)) {
				g := growthOf(unbounded, 4<<20)
				g.Add(from, &tree.Increment)
				for profiles := range g.Messages(begin, end) {
					each(profiles)
				}
			}
			total, messages := 0, 0
			interval(func(p pprofile.Profiles) {
				total += new(pprofile.ProtoMarshaler).ProfilesSize(p)
				messages++
			})
			cputime.Page(b, func() { interval(func(pprofile.Profiles) {}) })
			b.ReportMetric(float64(total)/1e6, "MB/interval")
			b.ReportMetric(float64(messages), "messages/interval")
		})
	}
}
