// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasreceiver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/arthas"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/session"
)

func cost(ns int) arthas.Cost { return arthas.Cost{Duration: time.Duration(ns), Known: true} }

// node returns a node of a call tree, from the call of a line or of a body.
func node(depth int32, method string, line int32, calls int64, total int) arthas.TraceNode {
	return arthas.TraceNode{
		Depth: depth, Class: "demo.Shop", Method: method, Line: line, CallSite: line > 0, Calls: calls,
		Last: cost(1), Min: cost(1), Max: cost(2), Total: cost(total),
	}
}

// draw returns the spans as lines: the name, the begin and the end since the root, and what else is known.
func draw(p *spanParcel) (lines []string) {
	depth := make([]int, len(p.spans))
	for i := range p.spans {
		s := &p.spans[i]
		if s.parentIndex >= 0 {
			depth[i] = depth[s.parentIndex] + 1
		}
		line := fmt.Sprintf("%s%s %d-%d", strings.Repeat(" ", depth[i]), s.method, s.start-p.spans[0].start, s.end-p.spans[0].start)
		if s.calls > 1 {
			line += fmt.Sprintf(" x%d", s.calls)
		}
		if s.threw {
			line += " threw " + s.exception
		}
		lines = append(lines, line)
	}
	return lines
}

func TestACallTreeBecomesSpansInOrder(t *testing.T) {
	thrown := arthas.TraceNode{Depth: 1, Line: 7, Exception: "demo.OutOfStock", Message: "none left"}
	for name, tt := range map[string]struct {
		nodes   []arthas.TraceNode
		most    int
		want    []string
		dropped int
	}{
		"callees follow each other": {
			[]arthas.TraceNode{node(0, "buy", 0, 1, 1000), node(1, "check", 5, 1, 100), node(1, "save", 6, 1, 200)}, 10,
			[]string{"buy 0-1000", " check 1-101", " save 102-302"}, 0,
		},
		"merged calls are one span with their total": {
			[]arthas.TraceNode{node(0, "buy", 0, 1, 1000), node(1, "row", 5, 3, 300)}, 10, []string{"buy 0-1000", " row 1-301 x3"}, 0,
		},
		"a body below its own call site is the same call": {
			[]arthas.TraceNode{node(0, "buy", 0, 1, 1000), node(1, "save", 5, 1, 300), node(2, "save", 0, 1, 290), node(3, "row", 8, 1, 50), node(1, "check", 6, 1, 10)}, 10,
			[]string{"buy 0-1000", " save 1-301", "  row 2-52", " check 302-312"}, 0,
		},
		"a method that calls itself has two spans": {
			[]arthas.TraceNode{node(0, "buy", 0, 1, 1000), node(1, "buy", 5, 1, 300)}, 10, []string{"buy 0-1000", " buy 1-301"}, 0,
		},
		"an exception belongs to its caller": {
			[]arthas.TraceNode{node(0, "buy", 0, 1, 1000), thrown, node(1, "log", 8, 1, 10)}, 10,
			[]string{"buy 0-1000 threw demo.OutOfStock", " log 1-11"}, 0,
		},
		"callees that need more time than their caller make it longer": {
			[]arthas.TraceNode{node(0, "buy", 0, 1, 100), node(1, "check", 5, 1, 100), node(1, "save", 6, 1, 0)}, 10,
			[]string{"buy 0-104", " check 1-101", " save 102-103"}, 0,
		},
		"calls beyond the limit are dropped with their callees": {
			[]arthas.TraceNode{node(0, "buy", 0, 1, 1000), node(1, "check", 5, 1, 10), node(1, "save", 6, 1, 10), node(2, "row", 7, 1, 10), thrown}, 2,
			[]string{"buy 0-1000 threw demo.OutOfStock", " check 1-11"}, 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			at := time.Date(2026, 11, 23, 22, 0, 0, 0, time.UTC)
			p, ok, dropped := traceSpans(&life{}, &arthas.Trace{Nodes: tt.nodes}, session.Received{At: at}, tt.most)
			require.True(t, ok)
			assert.Equal(t, tt.want, draw(&p))
			assert.Equal(t, tt.dropped, dropped)
			assert.Equal(t, at.UnixNano(), p.spans[0].start)
		})
	}
}

func TestATreeWithoutADurationIsLeftOut(t *testing.T) {
	unbegun := node(0, "buy", 0, 1, 1000)
	unbegun.Last, unbegun.Total = arthas.Cost{}, arthas.Cost{}
	_, ok, _ := traceSpans(&life{}, &arthas.Trace{Nodes: []arthas.TraceNode{unbegun}}, session.Received{}, 10)
	assert.False(t, ok)
	_, ok, _ = traceSpans(&life{}, &arthas.Trace{}, session.Received{}, 10)
	assert.False(t, ok)
}

func TestATraceIDOfAnotherTracerIsUsedIfItIsOneOfW3C(t *testing.T) {
	const w3c = "4bf92f3577b34da6a3ce929d0e0e4736"
	id, foreign := traceID(w3c)
	assert.Equal(t, w3c, id.String())
	assert.Empty(t, foreign)
	for _, other := range []string{"", "7f0101", w3c + "00", strings.Repeat("0", 32), strings.Repeat("g", 32)} {
		id, foreign = traceID(other)
		assert.False(t, id.IsEmpty())
		assert.Equal(t, other, foreign)
		assert.NotEqual(t, w3c, id.String())
	}
}
