// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/symbols"
	"github.com/callbraid/callbraid/internal/testkit"
)

// traceOf returns the trace of a group that has one.
func traceOf(g *Group) *Trace {
	for t := range g.traces {
		return t
	}
	return nil
}

// requireCounted compares the counted size of the processes' objects with their real size.
func requireCounted(t *testing.T, f *Group, processes []*Process) {
	t.Helper()
	all := 0
	for _, p := range processes {
		bytes := 0
		for _, list := range [][]symbols.Mapping{p.objects.recorded, p.objects.previous} {
			for i := range list {
				bytes += bytesOf(&list[i])
			}
		}
		require.Equal(t, bytes, p.objects.bytes)
		all += bytes
	}
	require.Equal(t, all, f.shared.objects)
}

func TestTheObjectsOfAllProcessesOfASessionAreBoundedInBytes(t *testing.T) {
	const bound, count = 4 * mib, 100
	f, processes := naming(t, 50, func(c *Limits) { c.ObjectsBytes = bound })
	before := testkit.HeapBytes()
	refused := 0
	for i := range count {
		for n, p := range processes {
			path := fmt.Sprintf("/%d/%d/%s", n, i, strings.Repeat("x", symbols.MaxPathBytes))[:symbols.MaxPathBytes]
			// Each object is recorded twice, as for two channels.
			for range 2 {
				if err := p.load(symbols.Mapping{Base: uint64(i+1) << 20, Size: 1 << 20, Path: strings.Clone(path), BuildID: make([]byte, 20)}); err != nil {
					require.ErrorContains(t, err, "expected objects of all processes of at most 4194304 bytes (limits.max_objects_bytes), got more")
					refused++
				}
			}
			require.LessOrEqual(t, f.shared.objects, bound)
			if f.shared.objects < bound*9/10 {
				require.Zero(t, refused, "there is room")
			}
		}
	}
	assert.Less(t, testkit.HeapBytes()-before, int64(bound))
	assert.Greater(t, f.shared.objects, bound*9/10)
	there := 0
	for _, p := range processes {
		there += len(p.objects.recorded)
		assert.Equal(t, len(p.objects.recorded), p.objects.loaded.Len())
	}
	assert.Equal(t, 2*(count*len(processes)-there), refused)
	requireCounted(t, f, processes)

	// An object that replaces others has their room.
	p := processes[0]
	require.NoError(t, p.load(symbols.Mapping{Base: 1 << 20, Size: 2 << 20, Path: strings.Repeat("y", symbols.MaxPathBytes)}))
	requireCounted(t, f, processes)
	p.unload(1 << 20)
	requireCounted(t, f, processes)
	for _, p := range processes {
		traceOf(f).remove(p)
	}
	assert.Zero(t, f.shared.objects)
}

func TestAnObjectWithoutRoomUnloadsTheObjectsAtItsAddresses(t *testing.T) {
	g, processes := naming(t, 1, func(c *Limits) { c.ObjectsBytes = 64 * kib })
	p := processes[0]
	require.NoError(t, p.load(symbols.Mapping{Base: 1 << 40, Size: 0x1000, Path: "/other"}))
	require.NoError(t, p.load(symbols.Mapping{Base: 0x1000, Size: 0x1000, Path: "/small"}))
	assert.Equal(t, "small+0x10", p.function(0x1010).Qualified)
	for i := range uint64(6) {
		require.NoError(t, p.load(symbols.Mapping{Base: 1<<41 + i<<20, Size: 1, Path: strings.Repeat("x", symbols.MaxPathBytes)}))
	}
	for range 6 {
		err := p.load(symbols.Mapping{Base: 0x1000, Size: 0x1000, Path: "/" + strings.Repeat("large", 2000), DebugLink: strings.Repeat("x", 16*kib)})
		require.ErrorAs(t, err, new(*noRoomError))
	}
	assert.Equal(t, "0x1010", p.function(0x1010).Qualified)
	assert.Equal(t, "other+0x10", p.function(1<<40+0x10).Qualified)
	require.ErrorAs(t, p.objects.setDebugLink(1<<40, string(make([]byte, 16*kib)), 0), new(*noRoomError))
	require.NoError(t, p.objects.setDebugLink(1<<40, "other.debug", 0))
	require.NoError(t, p.setBuildID(1<<40, []byte("id")))
	requireCounted(t, g, processes)
}

// During a repeated state dump, a process also has the objects of the previous one.
func TestObjectsOfBothStateDumpsAreCounted(t *testing.T) {
	for _, moved := range []uint64{0, 1 << 30} {
		f, processes := naming(t, 1, func(*Limits) {})
		p := processes[0]
		load := func(p *Process, base uint64) {
			for i := range uint64(10) {
				require.NoError(t, p.load(symbols.Mapping{Base: base + (i+1)<<20, Size: 1 << 20, Path: fmt.Sprint("/lib/", i)}))
			}
		}
		load(p, 0)
		one := f.shared.objects
		p.dump.listed = true
		require.True(t, p.beginDumpAgain(1))
		load(p, moved)
		requireCounted(t, f, processes)
		assert.Equal(t, 2*one, f.shared.objects)
		if !p.endDump() {
			p = traceOf(f).replace(p)
		}
		assert.Equal(t, one, f.shared.objects)
		if moved == 0 {
			requireCounted(t, f, processes)
		} else {
			requireCounted(t, f, []*Process{p})
		}
	}
}

func TestMoreObjectsThanAProcessMayHaveAreCountedAndLogged(t *testing.T) {
	f, processes := naming(t, 1, func(*Limits) {})
	for i := range uint64(symbols.DefaultMaxObjects + 1) {
		err := processes[0].load(symbols.Mapping{Base: i << 20, Size: 1, Path: "/x"})
		assert.Equal(t, i == symbols.DefaultMaxObjects, err != nil, err)
	}
	assert.True(t, f.shared.warned["objects"])
	assert.Len(t, processes[0].objects.recorded, symbols.DefaultMaxObjects)
}
