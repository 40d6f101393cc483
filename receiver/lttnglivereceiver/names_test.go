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

	"github.com/callbraid/callbraid/internal/callevent"
)

// naming is a session with so many processes, which have names and nothing else.
func naming(processes int) (*follower, []*process) {
	f := &follower{traces: map[string]*trace{}}
	t := &trace{follower: f, processes: map[processKey]*process{}}
	f.traces["trace"] = t
	all := make([]*process, processes)
	for i := range all {
		all[i] = &process{trace: t, functions: map[string]*function{}, lanes: map[uint64]*lane{}}
		t.processes[processKey{pid: int64(i)}] = all[i]
	}
	return f, all
}

// remembered is how many bytes of names a process has.
func remembered(p *process) (bytes int) {
	for key, f := range p.functions {
		bytes += nameBytes + len(key) + len(f.Qualified) + len(f.Display)
	}
	for _, l := range p.lanes {
		bytes += nameBytes + len(l.Name)
	}
	return bytes
}

func TestTheNamesThatAreRememberedOfASessionAreBoundedInBytes(t *testing.T) {
	f, processes := naming(8)
	long := strings.Repeat("x", callevent.MaxNameBytes/2)
	most := 0
	for i := range uint64(10_000) {
		p := processes[i%8]
		name := fmt.Appendf(nil, "%d%s", i, long)
		function := p.method([]byte("shop.Cart"), name)
		require.Same(t, function, p.method([]byte("shop.Cart"), name))
		l := p.laneOf(i, name)
		require.Same(t, l, p.laneOf(i, name))
		if i%100 == 0 || f.names < most {
			all := 0
			for _, p := range processes {
				require.Equal(t, remembered(p), p.names)
				all += p.names
			}
			require.Equal(t, all, f.names)
		}
		most = max(most, f.names)
		require.LessOrEqual(t, f.names, maxNamesBytes)
	}
	assert.Greater(t, most, maxNamesBytes/2)
	// A thread that is renamed all the time is one.
	p := processes[0]
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
	}
	assert.Zero(t, f.names)
}

func TestNoMoreOfALongNameIsKeptThanABatchTakes(t *testing.T) {
	_, processes := naming(1)
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
	_, processes := naming(1)
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
