// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/testkit/lttng"
	"github.com/callbraid/callbraid/test/kit"
)

// The calls of a turn of testdata/lttng/jumps.c, below their callers.
var (
	callsOfATurn = map[string]int{
		"turn in main": 1, "after in turn": 1, "outer in turn": 1, "compare in turn": 1, "on_signal in turn": 1,
		"leaf in after": 1, "leaf in outer": 1, "leaf in compare": 1, "leaf in on_signal": 1,
		"inlined in outer": 1, "inlined_twice in inlined": 2, "leaf in inlined_twice": 2,
		"visit_a in turn": 1, "helper in visit_a": 1, "visit_b in helper": 1,
		"leaf in visit_a": 1, "leaf in helper": 1, "leaf in visit_b": 1,
	}
	returning = map[string]int{"risky in turn": 1, "leaf in risky": 1, "deep in risky": 1, "deep in deep": 3, "leaf in deep": 4}
	jumping   = map[string]int{"risky in turn, longjmp": 1, "deep in risky, longjmp": 1, "deep in deep, longjmp": 3}
)

// Optimised programs have inlined functions, whose events have the call sites of other functions. A function without
// instrumentation that calls back is no longjmp, also if it is entered again below itself.
func TestCallsAfterALongjmpHaveTheirCallers(t *testing.T) {
	t.Parallel()
	const turns = 20
	daemons := lttng.Start(t)
	c := kit.Start(t, reader(daemons.Relay.Live))
	session := daemons.Create(t, lttng.Session{Name: "jumps"})
	want := map[string]map[string]int{}
	for _, level := range []string{"-O0", "-O1", "-O2", "-O3"} {
		path := daemons.BuildC(t, "testdata/lttng/jumps.c", level)
		for jump, special := range []map[string]int{returning, jumping} {
			daemons.RunC(t, path, fmt.Sprint(turns), fmt.Sprint(jump))
			calls := map[string]int{"main in nothing": 1}
			for _, of := range []map[string]int{callsOfATurn, special} {
				for what, n := range of {
					calls[what] += turns * n
				}
			}
			want[fmt.Sprintf("jumps%s %d", level, jump)] = calls
		}
	}
	session.Destroy(t)
	awaitClosed(t, c, 1)
	assert.Zero(t, c.Metric(t, lttngDiscarded))
	c.Stop(t)

	got := map[string]map[string]int{}
	for _, e := range readStreams(t, c, "spans.bin") {
		functions := map[string]string{"": "nothing"}
		for i := range e.spans {
			functions[e.spans[i].id.String()] = e.spans[i].function
		}
		calls, jumps := map[string]int{}, 0
		for i := range e.spans {
			s := &e.spans[i]
			what := s.function + " in " + functions[s.parent.String()]
			if s.isTruncated {
				what += ", " + s.truncated
				jumps = 1
			}
			calls[what]++
		}
		got[fmt.Sprintf("%s %d", e.resource["service.name"], jumps)] = calls
	}
	for name, calls := range want {
		assert.Equal(t, calls, got["unknown_service:"+name], name)
	}
}
