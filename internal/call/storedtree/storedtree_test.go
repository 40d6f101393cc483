// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package storedtree

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

var started = time.Date(2026, 11, 27, 10, 0, 0, 1, time.UTC)

// shop is a tree with everything that a tree can have.
func shop() *Entry {
	return &Entry{
		Window: HourOf(started), Part: 7,
		Snapshot: calltree.Snapshot{
			Service: "shop", Kind: calltree.Kind{Type: "wall", Unit: "nanoseconds"}, From: started, To: started.Add(time.Minute),
			Lost: calltree.Lost{Forgotten: 1, GivenUp: 2, FoldedPaths: 3, LeftOut: calltree.LeftOut{Calls: 4, Errors: 5, Time: 6}}, Missing: calltree.Missing{Classes: 4, First: "a.B"},
			Remarks: []string{"A remark.", ""},
			Nodes: []calltree.Node{
				{Parent: -1, Function: "main", File: "Main.java", Line: 3, Calls: 1, Total: 900, Self: 100},
				{Parent: 0, Function: "work", Calls: math.MaxUint64, Errors: 5, Total: math.MaxInt64, Self: math.MinInt64},
				{Parent: 1, Function: calltree.Folded.String(), Mark: calltree.Folded, Calls: 3, Self: -3},
				{Parent: 0, Function: "work", Mark: calltree.Truncated, Calls: 1, Total: 1, Self: 1},
				{Parent: -1, Function: calltree.MissingParent.String(), Mark: calltree.MissingParent, Total: 8},
				{Parent: 4, Function: "", File: "\xff\x00", Line: -1, Calls: 8, Total: 8, Self: 8},
				{Parent: 5, Function: calltree.Deep.String(), Mark: calltree.Deep, Calls: 1},
			},
		},
	}
}

// random is a random tree.
func random(r *rand.Rand) *Entry {
	e := &Entry{Window: DayOf(started), Part: r.Uint64(), Snapshot: calltree.Snapshot{Service: fmt.Sprint(r.Uint32()), From: started, To: started}}
	var way []int32
	for i := range r.IntN(200) {
		way = way[:r.IntN(len(way)+1)]
		n := calltree.Node{Parent: -1, Function: fmt.Sprint("f", r.IntN(20)), Calls: r.Uint64() >> r.IntN(64), Total: int64(r.Uint64() >> r.IntN(64)), Self: int64(r.Uint64())}
		if len(way) > 0 {
			n.Parent = way[len(way)-1]
		}
		e.Snapshot.Nodes = append(e.Snapshot.Nodes, n)
		way = append(way, int32(i))
	}
	return e
}

func TestATreeIsReadAsItWasWritten(t *testing.T) {
	c := NewEncoder()
	all := []*Entry{shop(), {Window: Window{Length: Live}, Snapshot: calltree.Snapshot{From: started, To: started}}}
	for seed := range uint64(200) {
		all = append(all, random(rand.New(rand.NewPCG(seed, 1))))
	}
	for _, e := range all {
		stored := c.Encode(e)
		got, err := Decode(stored)
		require.NoError(t, err)
		require.Equal(t, e, got)
		header, err := DecodeHeader(stored)
		require.NoError(t, err)
		s := &e.Snapshot
		require.Equal(t, Header{e.Window, e.Part, s.Service, s.Kind, s.From, s.To, len(s.Nodes)}, header)
	}
}

func TestTheDeepestTreeIsRead(t *testing.T) {
	e := &Entry{Snapshot: calltree.Snapshot{From: started, To: started}}
	for i := range calltree.MaxDepth {
		e.Snapshot.Nodes = append(e.Snapshot.Nodes, calltree.Node{Parent: int32(i) - 1, Function: "f", Calls: 1})
	}
	got, err := Decode(NewEncoder().Encode(e))
	require.NoError(t, err)
	require.Equal(t, e, got)
	e.Snapshot.Nodes = append(e.Snapshot.Nodes, calltree.Node{Parent: calltree.MaxDepth - 1, Function: "f"})
	_, err = Decode(NewEncoder().Encode(e))
	assert.ErrorContains(t, err, "at most 1000 levels")
}

func TestEachTornOrDamagedTreeIsAnError(t *testing.T) {
	stored := NewEncoder().Encode(shop())
	for length := range stored {
		_, err := Decode(stored[:length])
		require.Error(t, err, "the first %d bytes", length)
	}
	for at := range stored {
		damaged := append([]byte(nil), stored...)
		damaged[at] ^= 0x40
		_, err := Decode(damaged)
		require.Error(t, err, "byte %d", at)
	}
	_, err := Decode(append(stored, 0))
	require.Error(t, err)
	_, err = Decode(stored[:len(stored)-1])
	assert.ErrorContains(t, err, "it is torn or damaged: expected the checksum")
}

func TestAnotherVersionIsReported(t *testing.T) {
	stored := NewEncoder().Encode(shop())
	stored[len(magic)] = 0
	_, err := Decode(stored)
	require.Equal(t, VersionError{0, Version}, err)
	stored[len(magic)] = 3
	_, err = Decode(stored)
	require.Equal(t, VersionError{3, Version}, err)
	require.Equal(t, err, CheckVersion(stored[:len(magic)+1]))
	assert.EqualError(t, err, "another version of the collector stored it: expected a format up to 2, got 3")
	catalog := EncodeCatalog(&Catalog{})
	catalog[len(catalogMagic)] = 9
	_, err = DecodeCatalog(catalog)
	assert.Equal(t, VersionError{9, catalogVersion}, err)
}

// Each file was written by a version of the format. Later ones read it.
func TestEachVersionIsRead(t *testing.T) {
	for version := firstVersion; version <= Version; version++ {
		path := filepath.Join("testdata", fmt.Sprint("version", version))
		if os.Getenv("CALLBRAID_WRITE_GOLDEN") != "" && version == Version {
			require.NoError(t, os.WriteFile(path, NewEncoder().Encode(shop()), 0o644))
		}
		stored, err := os.ReadFile(path)
		require.NoError(t, err)
		got, err := Decode(stored)
		require.NoError(t, err)
		want := shop()
		if version == 1 {
			want.Snapshot.Lost.LeftOut = calltree.LeftOut{}
		}
		require.Equal(t, want, got)
	}
}

func catalog() *Catalog {
	return &Catalog{
		LastPart: 9, Saved: started, IsClosed: true, Interrupted: []time.Time{started, started.Add(time.Hour)},
		Entries: []Listed{
			{HourOf(started), 7, "shop", calltree.Calls, 100, 2000},
			{DayOf(started), 8, "shop", calltree.Kind{Type: "wall", Unit: "nanoseconds"}, 1, 0},
			{Window{}, 9, "", calltree.Calls, 0, 1},
		},
	}
}

func TestACatalogIsReadAsItWasWritten(t *testing.T) {
	for _, want := range []*Catalog{catalog(), {Saved: started, Entries: []Listed{}}} {
		stored := EncodeCatalog(want)
		got, err := DecodeCatalog(stored)
		require.NoError(t, err)
		require.Equal(t, want, got)
		for length := range stored {
			_, err := DecodeCatalog(stored[:length])
			require.Error(t, err)
		}
	}
}

func TestAPathTakesFewBytes(t *testing.T) {
	e := &Entry{Snapshot: calltree.Snapshot{From: started, To: started}}
	r := rand.New(rand.NewPCG(1, 1))
	var way []int32
	for i := range 100_000 {
		way = way[:min(len(way), max(0, len(way)-r.IntN(3)))]
		n := calltree.Node{Parent: -1, Function: fmt.Sprint("org.example.Class", r.IntN(500), ".method", r.IntN(9)), Calls: r.Uint64N(1000), Total: r.Int64N(1_000_000)}
		if n.Self = n.Total; len(way) > 0 {
			n.Parent = way[len(way)-1]
		}
		if e.Snapshot.Nodes = append(e.Snapshot.Nodes, n); len(way) < 100 {
			way = append(way, int32(i))
		}
	}
	assert.Less(t, len(NewEncoder().Encode(e)), 10*100_000)
}

func TestWindowsAreInUTC(t *testing.T) {
	zone := time.FixedZone("east", 5*3600+1800)
	at := time.Date(2026, 11, 28, 3, 59, 59, 0, zone) // 22:29:59 UTC
	assert.Equal(t, "2026-11-27T22Z", HourOf(at).String())
	assert.Equal(t, "2026-11-27Z", DayOf(at).String())
	assert.Equal(t, "live", Window{}.String())
	for _, w := range []Window{HourOf(at), DayOf(at)} {
		got, err := ParseWindow(w.String())
		require.NoError(t, err)
		assert.Equal(t, w, got)
		assert.Equal(t, time.UTC, w.From().Location())
	}
	assert.Equal(t, time.Hour, HourOf(at).To().Sub(HourOf(at).From()))
	assert.Equal(t, 24*time.Hour, DayOf(at).To().Sub(DayOf(at).From()))
	for _, wrong := range []string{"", "2026-11-27", "2026-11-27T10", "2026-11-27T24Z", "2026-02-30Z", "live"} {
		_, err := ParseWindow(wrong)
		assert.ErrorContains(t, err, "expected an hour in UTC such as 2026-11-27T10Z", wrong)
	}
}

// FuzzDecode reads any data, also with a right checksum. It returns an error, or a tree that is the same after it was written again.
func FuzzDecode(f *testing.F) {
	c := NewEncoder()
	for _, e := range []*Entry{shop(), random(rand.New(rand.NewPCG(1, 1))), {Snapshot: calltree.Snapshot{From: started, To: started}}} {
		stored := c.Encode(e)
		f.Add(stored)
		f.Add(stored[:len(stored)-checksumBytes])
	}
	f.Add(EncodeCatalog(catalog()))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, stored := range [][]byte{data, Seal(append([]byte(nil), data...))} {
			if e, err := Decode(stored); err == nil {
				again, err := Decode(c.Encode(e))
				require.NoError(t, err)
				require.Equal(t, e, again)
				sum := calltree.NewSum(1000)
				sum.Add(e.Snapshot)
				sum.Snapshot()
			}
			if list, err := DecodeCatalog(stored); err == nil {
				again, err := DecodeCatalog(EncodeCatalog(list))
				require.NoError(t, err)
				require.Equal(t, list, again)
			}
		}
	})
}

// FuzzBody reads any body.
func FuzzBody(f *testing.F) {
	f.Add(body(&shop().Snapshot), uint16(len(shop().Snapshot.Nodes)))
	f.Add([]byte{}, uint16(0))
	f.Fuzz(func(t *testing.T, data []byte, paths uint16) {
		r, s := reader{rest: data}, calltree.Snapshot{}
		r.body(&s, int(paths), Version)
		r.end()
		if r.err != nil {
			return
		}
		require.Len(t, s.Nodes, int(paths))
		again, got := reader{rest: body(&s)}, calltree.Snapshot{}
		again.body(&got, int(paths), Version)
		again.end()
		require.NoError(t, again.err)
		want, _ := json.Marshal(s)
		is, _ := json.Marshal(got)
		require.Equal(t, string(want), string(is))
	})
}

// BenchmarkEncode and BenchmarkDecode are for a tree of 100,000 paths.
func large() *Entry {
	e := &Entry{Snapshot: calltree.Snapshot{From: started, To: started}}
	for i := range 100_000 {
		e.Snapshot.Nodes = append(e.Snapshot.Nodes, calltree.Node{Function: fmt.Sprint("f", i%5000), Calls: uint64(i), Total: int64(i), Self: int64(i)})
	}
	for i := range e.Snapshot.Nodes {
		e.Snapshot.Nodes[i].Parent = int32(i - 1)
		if i%50 == 0 {
			e.Snapshot.Nodes[i].Parent = -1
		}
	}
	return e
}

func BenchmarkEncode(b *testing.B) {
	e, c := large(), NewEncoder()
	for b.Loop() {
		b.SetBytes(int64(len(c.Encode(e))))
	}
}

func BenchmarkDecode(b *testing.B) {
	stored := NewEncoder().Encode(large())
	for b.Loop() {
		if _, err := Decode(stored); err != nil {
			b.Fatal(err)
		}
	}
}
