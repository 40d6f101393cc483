// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/arthas"
	"github.com/callbraid/callbraid/internal/javamethods"
)

func cost(ns int) arthas.Cost { return arthas.Cost{Duration: time.Duration(ns), Known: true} }

// node returns a node of a call tree, from the call of a line or of a body.
func node(depth int32, method string, line int32, calls int64, total int) arthas.TraceNode {
	return arthas.TraceNode{
		Depth: depth, Class: "demo.Shop", Method: method, Line: line, CallSite: line > 0, Calls: calls,
		Last: cost(1), Min: cost(1), Max: cost(2), Total: cost(total),
	}
}

// draw returns the calls as lines: the name, the begin and the end since the root, and what else is known.
func draw(tree *javamethods.Tree) (lines []string) {
	for _, n := range tree.Nodes {
		line := fmt.Sprintf("%s%s %d-%d", strings.Repeat(" ", int(n.Depth)), n.Method, n.Start, n.End)
		if n.Repeated != nil {
			line += fmt.Sprintf(" x%d", n.Repeated.Calls)
		}
		if n.Threw {
			line += " threw " + n.Throws
		}
		lines = append(lines, line)
	}
	return lines
}

func TestACallTreeBecomesSpansInOrder(t *testing.T) {
	thrown := arthas.TraceNode{Depth: 1, Line: 7, Exception: "demo.OutOfStock", Message: "none left"}
	for name, tt := range map[string]struct {
		nodes []arthas.TraceNode
		want  []string
	}{
		"callees follow each other": {
			[]arthas.TraceNode{node(0, "buy", 0, 1, 1000), node(1, "check", 5, 1, 100), node(1, "save", 6, 1, 200)},
			[]string{"buy 0-1000", " check 1-101", " save 102-302"},
		},
		"merged calls are one span with their total": {
			[]arthas.TraceNode{node(0, "buy", 0, 1, 1000), node(1, "row", 5, 3, 300)},
			[]string{"buy 0-1000", " row 1-301 x3"},
		},
		"a body below its own call site is the same call": {
			[]arthas.TraceNode{node(0, "buy", 0, 1, 1000), node(1, "save", 5, 1, 300), node(2, "save", 0, 1, 290), node(3, "row", 8, 1, 50), node(1, "check", 6, 1, 10)},
			[]string{"buy 0-1000", " save 1-301", "  row 2-52", " check 302-312"},
		},
		"a method that calls itself has two spans": {
			[]arthas.TraceNode{node(0, "buy", 0, 1, 1000), node(1, "buy", 5, 1, 300)},
			[]string{"buy 0-1000", " buy 1-301"},
		},
		"an exception belongs to its caller": {
			[]arthas.TraceNode{node(0, "buy", 0, 1, 1000), thrown, node(1, "log", 8, 1, 10)},
			[]string{"buy 0-1000 threw demo.OutOfStock", " log 1-11"},
		},
		"callees that need more time than their caller make it longer": {
			[]arthas.TraceNode{node(0, "buy", 0, 1, 100), node(1, "check", 5, 1, 100), node(1, "save", 6, 1, 0)},
			[]string{"buy 0-104", " check 1-101", " save 102-103"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tree, ok := newTree(&arthas.Trace{Nodes: tt.nodes}, time.Time{})
			require.True(t, ok)
			assert.Equal(t, tt.want, draw(tree))
			assert.Zero(t, tree.Begin, "the server has sent none")
			for i := range tree.Nodes {
				assert.Equal(t, i > 0, tree.Nodes[i].Estimated)
			}
		})
	}
}

func TestATreeWithoutADurationIsLeftOut(t *testing.T) {
	unbegun := node(0, "buy", 0, 1, 1000)
	unbegun.Last, unbegun.Total = arthas.Cost{}, arthas.Cost{}
	_, ok := newTree(&arthas.Trace{Nodes: []arthas.TraceNode{unbegun}}, time.Time{})
	assert.False(t, ok)
	_, ok = newTree(&arthas.Trace{}, time.Time{})
	assert.False(t, ok)
}

func TestATraceIDOfAnotherTracerIsUsedIfItIsOneOfW3C(t *testing.T) {
	const w3c = "4bf92f3577b34da6a3ce929d0e0e4736"
	id, foreign := traceID(w3c)
	assert.Equal(t, w3c, hex.EncodeToString(id[:]))
	assert.Empty(t, foreign)
	for _, other := range []string{"", "7f0101", w3c + "00", strings.Repeat("0", 32), strings.Repeat("g", 32)} {
		id, foreign = traceID(other)
		assert.Zero(t, id)
		assert.Equal(t, other, foreign)
	}
}
