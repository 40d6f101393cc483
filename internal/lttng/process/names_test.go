// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/callstream"
	"github.com/callbraid/callbraid/internal/lttng/symbols"
	"github.com/callbraid/callbraid/internal/testkit"
)

const kib, mib = 1 << 10, 1 << 20

// nop is telemetry without effect, and a delivery that accepts everything.
type nop struct{}

func (nop) CallStreams(int64)               {}
func (nop) CallEventsPacked(int64)          {}
func (nop) CallEventsDropped(int64, string) {}
func (nop) BatchDropped(int, string)        {}
func (nop) CallValuesCut(int64)             {}
func (nop) Break(callevent.Cause)           {}
func (nop) NamesForgotten(int64)            {}
func (nop) NameUnknown()                    {}
func (nop) LineUnknown(string)              {}
func (nop) ObjectRefused()                  {}

// naming returns a group with processes that only have names.
func naming(tb testing.TB, processes int, change func(*Limits)) (*Group, []*Process) {
	tb.Helper()
	settings := symbols.DefaultSettings()
	settings.Paths = nil
	files, err := symbols.NewFiles(settings)
	require.NoError(tb, err)
	s := &Settings{
		NameWait: time.Second, Traces: true, Files: files, Telemetry: nop{}, Now: time.Now,
		Calls:  callstream.Settings{MaxBytes: 256 * kib, Now: time.Now},
		Limits: Limits{Processes: 1024, NamesBytes: 128 * mib, ObjectsBytes: 64 * mib, WaitingEvents: 100_000},
	}
	change(&s.Limits)
	g := NewGroup(s, Source{}, zap.NewNop(), nil, func(int) {})
	t := g.NewTrace("trace", nil, nil)
	all := make([]*Process, processes)
	for i := range all {
		key := Key{pid: int64(i)}
		all[i] = newProcess(&g.shared, t.key, key, 0, 0)
		all[i].names.open()
		t.processes[key] = all[i]
	}
	return g, all
}

// remembered returns the size of the names of a process.
func remembered(p *Process) (bytes int) {
	for _, f := range p.names.functions {
		bytes += nameBytes + len(f.Qualified) + len(f.Display)
	}
	for _, l := range p.names.lanes {
		bytes += nameBytes + len(l.Name)
	}
	for _, f := range p.names.byAddress {
		bytes += nameBytes + len(f.Qualified) + len(f.Display) + len(f.Text)
	}
	return bytes
}

func TestTheNamesOfASessionAreBoundedInBytes(t *testing.T) {
	for _, bound := range []int{mib, 8 * mib} {
		t.Run(strconv.Itoa(bound), func(t *testing.T) { requireBoundedNames(t, bound) })
	}
}

func requireBoundedNames(t *testing.T, bound int) {
	f, processes := naming(t, 8, func(c *Limits) { c.NamesBytes = bound })
	long := strings.Repeat("x", callevent.MaxNameBytes/2)
	for i, p := range processes {
		require.NoError(t, p.load(symbols.Mapping{Base: 1 << 40, Size: 1 << 40, Path: "/" + strconv.Itoa(i) + long[:symbols.MaxPathBytes/2]}))
	}
	most := 0
	for i := range uint64(2_000) {
		p := processes[i%8]
		name := fmt.Appendf(nil, "%d%s", i, long)
		function := p.names.method([]byte("shop.Cart"), name)
		require.Same(t, function, p.names.method([]byte("shop.Cart"), name))
		l := p.lane(i, name)
		require.Same(t, l, p.lane(i, name))
		at := p.function(1<<40 + i)
		require.Same(t, at, p.function(1<<40+i))
		p.function(i) // in no object
		if i%100 == 0 || f.shared.names < most {
			all := 0
			for _, p := range processes {
				require.Equal(t, remembered(p), p.names.bytes)
				all += p.names.bytes
			}
			require.Equal(t, all, f.shared.names)
		}
		most = max(most, f.shared.names)
		require.LessOrEqual(t, f.shared.names, bound)
	}
	assert.Greater(t, most, bound*9/10, "there was more than has room")
	// Names of addresses that may belong to another object now are deleted.
	p := processes[0]
	p.function(1)
	require.NoError(t, p.load(symbols.Mapping{Base: 1 << 30, Size: 1, Path: "/later"}))
	assert.Empty(t, p.names.byAddress)
	require.Equal(t, remembered(p), p.names.bytes)
	// A thread that is renamed all the time counts once.
	l := p.lane(1<<40, []byte("first"))
	before := f.shared.names
	for i := range 1000 {
		l = p.lane(1<<40, fmt.Appendf(nil, "%d%s", i, long))
	}
	assert.Equal(t, before-len("first")+len(l.Name), f.shared.names)
	for _, p := range processes {
		p.forgetNames()
		assert.Empty(t, p.names.functions)
		assert.Empty(t, p.names.lanes)
		assert.Empty(t, p.names.byAddress)
	}
	assert.Zero(t, f.shared.names)
}

// Waiting calls keep their names in memory, so they are packed when names are deleted.
func TestWaitingCallsArePackedWhenNamesAreForgotten(t *testing.T) {
	f, processes := naming(t, 2, func(c *Limits) { c.NamesBytes = mib })
	p, other := processes[0], processes[1]
	require.NoError(t, p.open())
	p.packAddress(callevent.KindEnter, 1, 16, 0, p.lane(7, []byte("a thread")), true)
	require.Equal(t, 1, f.shared.waiting)
	require.Zero(t, p.calls.Packed())
	long := strings.Repeat("x", callevent.MaxNameBytes/2)
	for i := uint64(0); p.names.lanes[7] != nil; i++ {
		other.lane(i, []byte(long))
	}
	assert.Zero(t, f.shared.waiting)
	assert.Equal(t, 1, p.calls.Packed())
}

func TestLongNamesAreCutToTheMaximumOfABatch(t *testing.T) {
	_, processes := naming(t, 1, func(*Limits) {})
	p := processes[0]
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range uint64(40) {
		name := append(fmt.Appendf(nil, "%d", i), strings.Repeat("é", mib/2)...)
		p.names.method(name, name)
		p.names.named(name)
		assert.LessOrEqual(t, len(p.lane(i, name).Name), callevent.MaxNameBytes)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	assert.Len(t, p.names.functions, 80)
	assert.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(20*mib))
	for _, f := range p.names.functions {
		assert.LessOrEqual(t, len(f.Qualified), callevent.MaxNameBytes)
		assert.LessOrEqual(t, len(f.Display), callevent.MaxNameBytes)
	}
	runtime.KeepAlive(p)
}

func TestTheNamesOfAMethod(t *testing.T) {
	_, processes := naming(t, 1, func(*Limits) {})
	p := processes[0]
	for _, test := range []struct{ class, method, qualified, display string }{
		{"shop.Cart", "add", "shop.Cart.add", "Cart.add"},
		{"Cart", "add", "Cart.add", "Cart.add"},
		{"", "add", "add", "add"},
		{"", "shop.add", "shop.add", "shop.add"},
		{"shop.", "add", "shop..add", "add"},
		{"shop.C\xff", "\xfe", "shop.C\uFFFD.\uFFFD", "C\uFFFD.\uFFFD"},
		{"", "", "", ""},
		// Java's modified UTF-8 has two surrogates for a character above U+FFFF, and two bytes for NUL.
		{"shop.\xED\xA0\xBD\xED\xB8\x80", "a\xC0\x80b", "shop.\U0001F600.a\x00b", "\U0001F600.a\x00b"},
	} {
		f := p.names.method([]byte(test.class), []byte(test.method))
		assert.Equal(t, test.qualified, f.Qualified)
		assert.Equal(t, test.display, f.Display)
		assert.Same(t, f, p.names.method([]byte(test.class), []byte(test.method)), "a name that is no UTF-8 is remembered, too")
	}
}

func TestTheCountedSizeOfNamesIsTheirSizeInMemory(t *testing.T) {
	for name, nameBytes := range map[string]int{"with short names": 30, "with long names": 4000} {
		t.Run(name, func(t *testing.T) {
			before := testkit.HeapBytes()
			f, processes := naming(t, 100, func(limits *Limits) { limits.NamesBytes = 1 << 30 })
			for i, p := range processes {
				for j := range 4_000_000 / (nameBytes * 50) {
					p.names.named(fmt.Appendf(nil, "%d %d %s", i, j, strings.Repeat("x", nameBytes)))
				}
			}
			held := testkit.HeapBytes() - before
			t.Logf("counted %d of %d bytes", f.shared.names, held)
			assert.InDelta(t, 1, float64(f.shared.names)/float64(held), 0.3)
			runtime.KeepAlive(processes)
		})
	}
}

func TestAnAddressOutsideOfAllKnownObjectsIsLoggedOnce(t *testing.T) {
	core, logged := observer.New(zapcore.InfoLevel)
	g, processes := naming(t, 2, func(*Limits) {})
	g.shared.logger = zap.New(core)
	p := processes[0]
	p.function(0x77777000)
	assert.Zero(t, logged.Len(), "the objects of the process are not known")
	for _, p := range processes {
		require.NoError(t, p.load(symbols.Mapping{Base: 0x5000, Size: 0x1000, Path: "/usr/bin/shop"}))
		p.function(0x5010)
		assert.Zero(t, logged.FilterField(zap.String("address", "shop+0x10")).Len())
		p.function(0x77777000)
		p.function(0x77777777)
	}
	lines := logged.FilterMessageSnippet("LD_PRELOAD=liblttng-ust-dl.so").All()
	require.Len(t, lines, 1)
	assert.Equal(t, "0x77777000", lines[0].ContextMap()["address"])
}
