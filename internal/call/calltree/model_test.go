// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// model is the slow and obvious way: it holds all spans, and builds the tree at the end.
type model struct {
	spans []modelSpan
	// known are the spans by their service and key, and seen their keys alone.
	known map[modelKey]int
	seen  map[spanKey]bool
}

type modelKey struct {
	service string
	spanKey
}

type modelSpan struct {
	Span
	service string
}

func newModel() *model { return &model{known: map[modelKey]int{}, seen: map[spanKey]bool{}} }

// add adds a span, unless it was added before.
func (m *model) add(service string, span Span) {
	if span.ID != (SpanID{}) {
		key := modelKey{service, span.key()}
		if _, known := m.known[key]; known {
			return
		}
		m.known[key], m.seen[span.key()] = len(m.spans), true
	}
	m.spans = append(m.spans, modelSpan{Span: span, service: service})
}

// caller is the number of the calling span, or -1; missing: the caller has not arrived.
func (m *model) caller(i int) (caller int, missing bool) {
	span := m.spans[i]
	if span.Parent == (SpanID{}) || span.Remote {
		return -1, false
	}
	if caller, known := m.known[modelKey{span.service, span.caller()}]; known {
		return caller, false
	}
	return -1, !m.seen[span.caller()]
}

// path is the functions from the top to the span.
func (m *model) path(i int) string {
	name := m.spans[i].Function
	if m.spans[i].Truncated {
		name += " truncated"
	}
	caller, missing := m.caller(i)
	switch {
	case caller >= 0:
		return m.path(caller) + "/" + name
	case missing:
		return MissingParent.String() + "/" + name
	}
	return name
}

// took is the time of the span's call, or of its repeated calls.
func (m *model) took(i int) int64 {
	span := m.spans[i]
	if span.CallsTime > 0 {
		return min(span.CallsTime, span.duration())
	}
	return span.duration()
}

// own is the time of the span's call without its callees.
func (m *model) own(i int) int64 {
	own := m.took(i)
	for j := range m.spans {
		if caller, _ := m.caller(j); caller == i {
			own -= m.took(j)
		}
	}
	return max(0, own)
}

// owns are the own times of all calls.
func (m *model) owns() []int64 {
	owns := make([]int64, len(m.spans))
	for i := range owns {
		owns[i] = m.own(i)
	}
	return owns
}

// tree is the tree of a service of the spans from a number on.
func (m *model) tree(service string, from int) map[string]values {
	tree := map[string]values{}
	for i, own := range m.owns() {
		if i < from || m.spans[i].service != service {
			continue
		}
		v := values{calls: max(1, m.spans[i].Calls), total: m.took(i), self: own}
		if m.spans[i].Error {
			v.errors = 1
		}
		sum := tree[m.path(i)]
		sum.add(&v)
		tree[m.path(i)] = sum
	}
	return tree
}

// paths are the nodes of a snapshot with values, by their paths. The node MissingParent has no
// values of its own: its total is that of the nodes below it.
func paths(t testing.TB, nodes []Node) map[string]values {
	t.Helper()
	byPath, all := map[string]values{}, make([]string, len(nodes))
	missing := int64(0)
	for i, n := range nodes {
		name := n.Function
		if n.Mark == Truncated {
			name += " truncated"
		}
		if n.Parent >= 0 {
			if !assert.Less(t, int(n.Parent), i, "a parent stands before its children") {
				return nil
			}
			name = all[n.Parent] + "/" + name
		}
		all[i] = name
		v := values{n.Calls, n.Errors, n.Total, n.Self}
		if n.Mark == MissingParent {
			missing = v.total
			v.total = 0
		} else if n.Parent >= 0 && nodes[n.Parent].Mark == MissingParent {
			missing -= v.total
		}
		if v == (values{}) {
			continue
		}
		assert.NotContains(t, byPath, name)
		byPath[name] = v
	}
	assert.Zero(t, missing, "the total below MissingParent")
	return byPath
}

// lines are the paths as sorted lines, for comparison.
func lines(tree map[string]values) string {
	var text strings.Builder
	for _, path := range slices.Sorted(maps.Keys(tree)) {
		v := tree[path]
		fmt.Fprintf(&text, "%s: %d calls, %d errors, total %d, self %d\n", path, v.calls, v.errors, v.total, v.self)
	}
	return text.String()
}
