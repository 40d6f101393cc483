// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"encoding/binary"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/callbraid/callbraid/internal/greys"
)

// maxCallTime is how long a call may take: longer ones are made shorter, so that times stay
// times.
const maxCallTime = 365 * 24 * time.Hour

// treeSpans makes spans of a call tree that was received at a time, at most so many; left is
// how many calls were left out. The server says no clock, and its times are whole
// milliseconds since the tree's start. So the tree ends when it was received, and the time
// of each event, the begin or the end of a call, is the larger of its own and the last one's
// plus 1 ns: calls lie inside their callers, after one another, and none is empty.
func treeSpans(of *origin, tree *greys.Tree, received time.Time, most int) (p spanParcel, left int) {
	nodes := tree.Nodes
	if len(nodes) > most {
		nodes, left = nodes[:most], len(nodes)-most
	}
	p = spanParcel{origin: of, thread: tree.Thread, hasThread: true, spans: make([]span, len(nodes))}
	binary.BigEndian.PutUint64(p.trace[:8], rand.Uint64())
	binary.BigEndian.PutUint64(p.trace[8:], nonZero())
	t := treeTime{nodes: nodes, spans: p.spans, last: -1}
	for i := range nodes {
		t.leave(nodes[i].Depth)
		t.enter(i)
	}
	t.leave(0)
	began := received.UnixNano() - t.last
	for i := range p.spans {
		p.spans[i].start += began
		p.spans[i].end += began
	}
	return p, left
}

// treeTime goes through the calls of a tree.
type treeTime struct {
	nodes []greys.Node
	spans []span
	// open are calls that have begun and not ended.
	open []openCall
	// last is the time of the last event, in nanoseconds since the tree's start.
	last int64
}

// openCall is a call by its index, and when it ends, which none that it calls outlives.
type openCall struct {
	index int
	end   time.Duration
}

// at is the time of an event whose own is so long after the tree's start.
func (t *treeTime) at(own time.Duration) int64 {
	t.last = max(own.Nanoseconds(), t.last+1)
	return t.last
}

// leave ends the calls that are open, down to a depth.
func (t *treeTime) leave(depth int32) {
	for n := len(t.open); n > 0; n = len(t.open) {
		call := t.open[n-1]
		if t.nodes[call.index].Depth < depth {
			return
		}
		t.spans[call.index].end = t.at(call.end)
		t.open = t.open[:n-1]
	}
}

// enter begins a call.
func (t *treeTime) enter(i int) {
	node := &t.nodes[i]
	latest, parent := maxCallTime, pcommon.SpanID{}
	if n := len(t.open); n > 0 {
		latest, parent = t.open[n-1].end, t.spans[t.open[n-1].index].id
	}
	s := &t.spans[i]
	*s = span{
		parent: parent, start: t.at(min(node.Start, latest)),
		class: node.Class, method: node.Method, line: node.Line, threw: exception{kind: node.Throws},
	}
	binary.BigEndian.PutUint64(s.id[:], nonZero())
	t.open = append(t.open, openCall{i, min(node.End, latest)})
}

// nonZero is a random number that is not zero.
func nonZero() uint64 { return max(rand.Uint64(), 1) }
