// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/symbols"
)

// heap is how many bytes are in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// requireCounted compares what the objects of processes are counted as with what they are.
func requireCounted(t *testing.T, f *follower, processes []*process) {
	t.Helper()
	all := 0
	for _, p := range processes {
		bytes := 0
		for _, list := range [][]symbols.Mapping{p.addresses.told, p.addresses.again.before} {
			for i := range list {
				bytes += bytesOf(&list[i])
			}
		}
		require.Equal(t, bytes, p.addresses.bytes)
		all += bytes
	}
	require.Equal(t, all, f.objects)
}

func TestTheObjectsOfAllProcessesOfASessionAreBoundedInBytes(t *testing.T) {
	const bound, count = 4 * mib, 100
	f, processes := naming(t, 50, func(c *LimitsConfig) { c.MaxObjectsBytes = bound })
	before := heap()
	refused := 0
	for i := range count {
		for n, p := range processes {
			path := fmt.Sprintf("/%d/%d/%s", n, i, strings.Repeat("x", symbols.MaxPathBytes))[:symbols.MaxPathBytes]
			// Each is told twice, as for two channels.
			for range 2 {
				if err := p.load(symbols.Mapping{Base: uint64(i+1) << 20, Size: 1 << 20, Path: strings.Clone(path), BuildID: make([]byte, 20)}); err != nil {
					require.ErrorContains(t, err, "expected objects of all processes of at most 4194304 bytes (limits.max_objects_bytes), got more")
					refused++
				}
			}
			require.LessOrEqual(t, f.objects, bound)
			if f.objects < bound*9/10 {
				require.Zero(t, refused, "there is room")
			}
		}
	}
	assert.Less(t, heap()-before, int64(bound))
	assert.Greater(t, f.objects, bound*9/10)
	there := 0
	for _, p := range processes {
		there += len(p.addresses.told)
		assert.Equal(t, len(p.addresses.told), p.addresses.objects.Len())
	}
	assert.Equal(t, 2*(count*len(processes)-there), refused)
	requireCounted(t, f, processes)

	// One that takes the place of others has their room.
	p := processes[0]
	require.NoError(t, p.load(symbols.Mapping{Base: 1 << 20, Size: 2 << 20, Path: strings.Repeat("y", symbols.MaxPathBytes)}))
	requireCounted(t, f, processes)
	p.unload(1 << 20)
	requireCounted(t, f, processes)
	for _, p := range processes {
		p.forget()
	}
	assert.Zero(t, f.objects)
}

func TestAnObjectThatHasNoRoomIsNotMistakenForWhatLayThere(t *testing.T) {
	_, processes := naming(t, 1, func(c *LimitsConfig) { c.MaxObjectsBytes = minObjectsBytes })
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
	require.ErrorAs(t, p.setDebugLink(1<<40, make([]byte, 16*kib)), new(*noRoomError))
	require.NoError(t, p.setDebugLink(1<<40, []byte("other.debug")))
	require.NoError(t, p.setBuildID(1<<40, []byte("id")))
	requireCounted(t, p.trace.follower, processes)
}

// A process that tells its state again has what it told before, too, until it is done.
func TestObjectsThatAreToldAgainAreCountedWithThoseBefore(t *testing.T) {
	for _, moved := range []uint64{0, 1 << 30} {
		f, processes := naming(t, 1, func(*LimitsConfig) {})
		p := processes[0]
		load := func(p *process, base uint64) {
			for i := range uint64(10) {
				require.NoError(t, p.load(symbols.Mapping{Base: base + (i+1)<<20, Size: 1 << 20, Path: fmt.Sprint("/lib/", i)}))
			}
		}
		load(p, 0)
		one := f.objects
		p.addresses.listed = true
		require.True(t, p.retells(1))
		load(p, moved)
		requireCounted(t, f, processes)
		assert.Equal(t, 2*one, f.objects)
		p.retold()
		assert.Equal(t, one, f.objects)
		if moved == 0 {
			requireCounted(t, f, processes)
		} else {
			requireCounted(t, f, []*process{p.trace.processes[p.key]})
		}
	}
}

// What has no room for its name is packed, and the calls that wait are, too.
func TestNamesThatHaveNoRoomCostNoCallThatWaits(t *testing.T) {
	s := newSynthetic("many", "vpid", "vtid", "procname$")
	s.class("lttng_ust_statedump:start")
	s.class("lttng_ust_statedump:bin_info", "baddr", "memsz", "path$", "has_build_id")
	s.class("lttng_ust_statedump:end")
	s.class(cygEntry, "addr", "call_site")
	const processes, calls = 4, 200
	stream := s.stream().packet(1)
	long := strings.Repeat("x", symbols.MaxPathBytes-1)
	at := uint64(1)
	for pid := range processes {
		stream.event(at, "lttng_ust_statedump:start", pid, 1, "p")
		for i := range calls {
			at++
			stream.event(at, cygEntry, pid, 1, fmt.Sprint("thread ", i, long), 1<<20+i, 0)
		}
	}
	for pid := range processes {
		at++
		stream.event(at, "lttng_ust_statedump:bin_info", pid, 1, "p", 1<<20, 1<<20, "/"+long, 0)
		at++
		stream.event(at, "lttng_ust_statedump:end", pid, 1, "p")
	}
	b := served(t, []*synthetic{s}, func(_ *bed, c *Config) { c.Limits.MaxNamesBytes = minNamesBytes })
	got := 0
	for _, stream := range b.pipeline.streams(t) {
		got += len(stream.inOrder(t))
	}
	assert.Equal(t, processes*calls, got)
	assert.Positive(t, b.metric("receiver_lttng_live_names_forgotten"))
	assert.Equal(t, 1, b.said.FilterMessageSnippet("have no room: they are forgotten").Len())
}

// hostile is a session of so many processes with as many objects each as there may be and
// one more, with long paths.
func hostileObjects(processes, objects int) *synthetic {
	s := newSynthetic("hostile", "vpid", "vtid")
	s.class("lttng_ust_statedump:start")
	s.class("lttng_ust_statedump:bin_info", "baddr", "memsz", "path$", "has_build_id")
	s.class("lttng_ust_statedump:end")
	s.class(cygEntry, "addr", "call_site")
	stream := s.stream()
	long := strings.Repeat("x", 2*symbols.MaxPathBytes)
	for pid := range processes {
		at := uint64(1 + pid*second)
		stream.packet(at).event(at, "lttng_ust_statedump:start", pid, 1)
		for i := range objects {
			at++
			stream.event(at, "lttng_ust_statedump:bin_info", pid, 1, (i+1)<<20, 1<<20, "/"+long, 0)
		}
		at++
		stream.event(at, "lttng_ust_statedump:end", pid, 1).event(at+1, cygEntry, pid, 1, objects<<20+16, 0)
	}
	return s
}

func TestObjectsThatHaveNoRoomAreCountedAndSaid(t *testing.T) {
	const processes, objects = 20, 40
	b := served(t, []*synthetic{hostileObjects(processes, objects)}, func(_ *bed, c *Config) { c.Limits.MaxObjectsBytes = mib })
	there := mib / (objectBytes + 2*symbols.MaxPathBytes)
	assert.EqualValues(t, processes*objects-there, b.metric("receiver_lttng_live_objects_refused"))
	said := b.said.FilterMessage("An object has no room: functions in it go by their addresses").All()
	require.Len(t, said, 1, "once for the session")
	assert.Contains(t, said[0].ContextMap()["error"], "(limits.max_objects_bytes)")
	named, bare := 0, 0
	for _, stream := range b.pipeline.streams(t) {
		for _, e := range stream.inOrder(t) {
			if strings.HasPrefix(e.function, "0x") {
				bare++
			} else {
				assert.True(t, strings.HasSuffix(e.function, "+0x10"))
				named++
			}
		}
	}
	assert.Equal(t, there/objects, named)
	assert.Equal(t, processes-named, bare)
}

func TestMoreObjectsThanAProcessMayHaveAreCountedAndSaid(t *testing.T) {
	f, processes := naming(t, 1, func(*LimitsConfig) {})
	for i := range uint64(symbols.DefaultMaxObjects + 1) {
		err := processes[0].load(symbols.Mapping{Base: i << 20, Size: 1, Path: "/x"})
		assert.Equal(t, i == symbols.DefaultMaxObjects, err != nil, err)
	}
	assert.True(t, f.warned["objects"])
	assert.Len(t, processes[0].addresses.told, symbols.DefaultMaxObjects)
}
