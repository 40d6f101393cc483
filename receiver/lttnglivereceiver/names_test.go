// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/lttng/symbols"
	"github.com/callbraid/callbraid/internal/receiverkit/serverhealth"
)

// naming is a session with so many processes, which have names and nothing else.
func naming(tb testing.TB, processes int, change func(*LimitsConfig)) (*follower, []*process) {
	tb.Helper()
	telemetry, err := newTelemetry(componenttest.NewNopTelemetrySettings(), serverhealth.New())
	require.NoError(tb, err)
	settings := symbols.DefaultSettings()
	settings.Paths = nil
	files, err := symbols.NewFiles(settings)
	require.NoError(tb, err)
	env := &environment{config: createDefaultConfig(), telemetry: telemetry, files: files, logger: zap.NewNop(), hooks: hooks{now: time.Now}}
	change(&env.config.Limits)
	f := &follower{env: env, logger: env.logger, traces: map[string]*trace{}, warned: map[string]bool{}}
	t := &trace{follower: f, env: env, processes: map[processKey]*process{}}
	f.traces["trace"] = t
	all := make([]*process, processes)
	for i := range all {
		all[i] = &process{
			origin: origin{config: env.config, id: callevent.StreamID{1}}, trace: t, functions: map[string]*function{}, lanes: map[uint64]*lane{},
			addresses: addresses{objects: symbols.NewObjects(nil, symbols.DefaultMaxObjects)},
		}
		t.processes[processKey{pid: int64(i)}] = all[i]
	}
	return f, all
}

// remembered is how many bytes of names a process has.
func remembered(p *process) (bytes int) {
	for _, f := range p.functions {
		bytes += nameBytes + len(f.Qualified) + len(f.Display)
	}
	for _, l := range p.lanes {
		bytes += nameBytes + len(l.Name)
	}
	for _, f := range p.addresses.known {
		bytes += nameBytes + len(f.Qualified) + len(f.Display) + len(f.Text)
	}
	return bytes
}

func TestTheNamesThatAreRememberedOfASessionAreBoundedInBytes(t *testing.T) {
	for _, bound := range []int{minNamesBytes, 8 * minNamesBytes} {
		t.Run(strconv.Itoa(bound), func(t *testing.T) { requireBoundedNames(t, bound) })
	}
}

func requireBoundedNames(t *testing.T, bound int) {
	f, processes := naming(t, 8, func(c *LimitsConfig) { c.MaxNamesBytes = bound })
	long := strings.Repeat("x", callevent.MaxNameBytes/2)
	for i, p := range processes {
		require.NoError(t, p.load(symbols.Mapping{Base: 1 << 40, Size: 1 << 40, Path: "/" + strconv.Itoa(i) + long[:symbols.MaxPathBytes/2]}))
	}
	most := 0
	for i := range uint64(2_000) {
		p := processes[i%8]
		name := fmt.Appendf(nil, "%d%s", i, long)
		function := p.method([]byte("shop.Cart"), name)
		require.Same(t, function, p.method([]byte("shop.Cart"), name))
		l := p.laneOf(i, name)
		require.Same(t, l, p.laneOf(i, name))
		at := p.function(1<<40 + i)
		require.Same(t, at, p.function(1<<40+i))
		p.function(i) // in no object
		if i%100 == 0 || f.names < most {
			all := 0
			for _, p := range processes {
				require.Equal(t, remembered(p), p.names)
				all += p.names
			}
			require.Equal(t, all, f.names)
		}
		most = max(most, f.names)
		require.LessOrEqual(t, f.names, bound)
	}
	assert.Greater(t, most, bound*9/10, "there was more than has room")
	// What is at an address is forgotten where that may be something else now.
	p := processes[0]
	p.function(1)
	require.NoError(t, p.load(symbols.Mapping{Base: 1 << 30, Size: 1, Path: "/later"}))
	assert.Empty(t, p.addresses.known)
	require.Equal(t, remembered(p), p.names)
	// A thread that is renamed all the time is one.
	l := p.laneOf(1<<40, []byte("first"))
	before := f.names
	for i := range 1000 {
		l = p.laneOf(1<<40, fmt.Appendf(nil, "%d%s", i, long))
	}
	assert.Equal(t, before-len("first")+len(l.Name), f.names)
	for _, p := range processes {
		p.forgetNames()
		assert.Empty(t, p.functions)
		assert.Empty(t, p.lanes)
		assert.Empty(t, p.addresses.known)
	}
	assert.Zero(t, f.names)
}

// Calls that wait keep their names in memory: they are packed when names are forgotten.
func TestCallsThatWaitDoSoNoLongerWhenNamesAreForgotten(t *testing.T) {
	f, processes := naming(t, 2, func(c *LimitsConfig) { c.MaxNamesBytes = minNamesBytes })
	p, other := processes[0], processes[1]
	require.NoError(t, p.openPacker())
	p.trace.tellsObjects = true
	p.address(callevent.KindEnter, 1, 16, p.laneOf(7, []byte("a thread")))
	require.Equal(t, 1, f.waiting)
	require.Zero(t, p.packer.Len())
	long := strings.Repeat("x", callevent.MaxNameBytes/2)
	for i := uint64(0); p.lanes[7] != nil; i++ {
		other.laneOf(i, []byte(long))
	}
	assert.Zero(t, f.waiting)
	assert.Equal(t, 1, p.packer.Len())
}

func TestNoMoreOfALongNameIsKeptThanABatchTakes(t *testing.T) {
	_, processes := naming(t, 1, func(*LimitsConfig) {})
	p := processes[0]
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range uint64(40) {
		name := append(fmt.Appendf(nil, "%d", i), strings.Repeat("é", mib/2)...)
		p.method(name, name)
		p.named(name)
		assert.LessOrEqual(t, len(p.laneOf(i, name).Name), callevent.MaxNameBytes)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	assert.Len(t, p.functions, 80)
	assert.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(20*mib))
	for _, f := range p.functions {
		assert.LessOrEqual(t, len(f.Qualified), callevent.MaxNameBytes)
		assert.LessOrEqual(t, len(f.Display), callevent.MaxNameBytes)
	}
	runtime.KeepAlive(p)
}

func TestTheNamesOfAMethod(t *testing.T) {
	_, processes := naming(t, 1, func(*LimitsConfig) {})
	p := processes[0]
	for _, test := range []struct{ class, method, qualified, display string }{
		{"shop.Cart", "add", "shop.Cart.add", "Cart.add"},
		{"Cart", "add", "Cart.add", "Cart.add"},
		{"", "add", "add", "add"},
		{"", "shop.add", "shop.add", "shop.add"},
		{"shop.", "add", "shop..add", "add"},
		{"shop.C\xff", "\xfe", "shop.C\uFFFD.\uFFFD", "C\uFFFD.\uFFFD"},
		{"", "", "", ""},
	} {
		f := p.method([]byte(test.class), []byte(test.method))
		assert.Equal(t, test.qualified, f.Qualified)
		assert.Equal(t, test.display, f.Display)
		assert.Same(t, f, p.method([]byte(test.class), []byte(test.method)), "a name that is no UTF-8 is remembered, too")
	}
}
