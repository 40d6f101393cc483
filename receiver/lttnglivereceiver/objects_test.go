// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/mapping"
	"github.com/callbraid/callbraid/internal/lttng/session"
	"github.com/callbraid/callbraid/internal/lttng/sim/synthetic"
	"github.com/callbraid/callbraid/internal/lttng/symbols"
)

// A call without room for its name is packed, and so are the calls that wait.
func TestNamesWithoutRoomDropNoWaitingCall(t *testing.T) {
	s := synthetic.New("many", "vpid", "vtid", "procname$")
	s.Class("lttng_ust_statedump:start")
	s.Class("lttng_ust_statedump:bin_info", "baddr", "memsz", "path$", "has_build_id")
	s.Class("lttng_ust_statedump:end")
	s.Class(mapping.EventCygEntry, "addr", "call_site")
	const processes, calls = 4, 200
	stream := s.Stream().Packet(1)
	long := strings.Repeat("x", symbols.MaxPathBytes-1)
	at := uint64(1)
	for pid := range processes {
		stream.Event(at, "lttng_ust_statedump:start", pid, 1, "p")
		for i := range calls {
			at++
			stream.Event(at, mapping.EventCygEntry, pid, 1, fmt.Sprint("thread ", i, long), 1<<20+i, 0)
		}
	}
	for pid := range processes {
		at++
		stream.Event(at, "lttng_ust_statedump:bin_info", pid, 1, "p", 1<<20, 1<<20, "/"+long, 0)
		at++
		stream.Event(at, "lttng_ust_statedump:end", pid, 1, "p")
	}
	b := served(t, []*synthetic.Session{s}, func(_ *bed, c *Config) { c.Limits.MaxNamesBytes = session.MinNamesBytes })
	got := 0
	for _, stream := range b.pipeline.streams(t) {
		got += len(stream.inOrder(t))
	}
	assert.Equal(t, processes*calls, got)
	assert.Positive(t, b.metric("receiver_lttng_live_names_forgotten"))
	assert.Equal(t, 1, b.said.FilterMessageSnippet("have no room. They are forgotten").Len())
}

// hostileObjects returns a session of processes with one object more than allowed, with long paths.
func hostileObjects(processes, objects int) *synthetic.Session {
	s := synthetic.New("hostile", "vpid", "vtid")
	s.Class("lttng_ust_statedump:start")
	s.Class("lttng_ust_statedump:bin_info", "baddr", "memsz", "path$", "has_build_id")
	s.Class("lttng_ust_statedump:end")
	s.Class(mapping.EventCygEntry, "addr", "call_site")
	stream := s.Stream()
	long := strings.Repeat("x", 2*symbols.MaxPathBytes)
	for pid := range processes {
		at := uint64(1 + pid*second)
		stream.Packet(at).Event(at, "lttng_ust_statedump:start", pid, 1)
		for i := range objects {
			at++
			stream.Event(at, "lttng_ust_statedump:bin_info", pid, 1, (i+1)<<20, 1<<20, "/"+long, 0)
		}
		at++
		stream.Event(at, "lttng_ust_statedump:end", pid, 1).Event(at+1, mapping.EventCygEntry, pid, 1, objects<<20+16, 0)
	}
	return s
}

func TestObjectsWithoutRoomAreCountedAndLogged(t *testing.T) {
	const processes, objects = 20, 40
	b := served(t, []*synthetic.Session{hostileObjects(processes, objects)}, func(_ *bed, c *Config) { c.Limits.MaxObjectsBytes = mib })
	const objectBytes = 500 // without its texts
	allowed := mib / (objectBytes + 2*symbols.MaxPathBytes)
	assert.EqualValues(t, processes*objects-allowed, b.metric("receiver_lttng_live_objects_refused"))
	said := b.said.FilterMessage("An object has no room: functions in it are named by their addresses").All()
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
	assert.Equal(t, allowed/objects, named)
	assert.Equal(t, processes-named, bare)
}
