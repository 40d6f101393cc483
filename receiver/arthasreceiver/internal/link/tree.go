// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"encoding/hex"
	"time"

	"github.com/callbraid/callbraid/internal/arthas"
	"github.com/callbraid/callbraid/internal/javamethods"
)

// call is a node of a call tree with the calls inside it.
type call struct {
	javamethods.Node
	// parent is the index of its caller, or -1.
	parent int
	// length is its duration, and at least that of its callees together. next is the end of its last callee so far.
	length, next time.Duration
	callSite     bool
}

// newTree returns a call tree with a time for each call. It is not ok if the duration of the root is not known. These are
// its steps:
//
//  1. A node becomes a call. A thrown exception belongs to its caller. The body of a method below its own call site is the
//     same call.
//  2. From the last call to the first, the length of a call is its duration, but at least that of its callees together.
//  3. From the first to the last, a callee begins 1 ns after the one before it ended, or after its caller began. Only the
//     root has a time from the server, so the others are marked as estimated.
func newTree(trace *arthas.Trace, begin time.Time) (tree *javamethods.Tree, ok bool) {
	tree = &javamethods.Tree{Begin: begin, Thread: trace.Thread}
	tree.TraceID, tree.ForeignTrace = traceID(trace.TraceID)
	calls := callsOf(trace.Nodes)
	if len(trace.Nodes) == 0 || !durationOf(&trace.Nodes[0]).Known {
		return tree, false
	}
	const step = 1
	for i := len(calls) - 1; i >= 0; i-- {
		c := &calls[i]
		c.length = max(c.length+step, c.End)
		if c.parent >= 0 {
			calls[c.parent].length += step + c.length
		}
	}
	top := time.Duration(0)
	for i := range calls {
		c := &calls[i]
		place := &top
		if c.parent >= 0 {
			place = &calls[c.parent].next
		}
		c.Start, c.End, c.Estimated = *place, *place+c.length, i > 0
		*place, c.next = c.End+step, c.Start+step
		tree.Nodes = append(tree.Nodes, c.Node)
	}
	return tree, true
}

// callsOf returns the calls of nodes. Their ends are their durations.
func callsOf(nodes []arthas.TraceNode) (calls []call) {
	// open has the index of the call at each depth.
	var open []int
	for i := range nodes {
		node := &nodes[i]
		open = open[:min(int(node.Depth), len(open))]
		parent := -1
		if n := len(open); n > 0 {
			parent = open[n-1]
		}
		switch {
		case node.Exception != "":
			if len(calls) > 0 {
				caller := &calls[max(parent, 0)]
				caller.Threw, caller.Throws, caller.Message = true, node.Exception, node.Message
			}
		case parent >= 0 && calls[parent].isBody(node):
			calls[parent].Threw = calls[parent].Threw || node.Throws
			open = append(open, parent)
		default:
			open = append(open, len(calls))
			c := newCall(node, parent)
			if parent >= 0 {
				c.Depth = calls[parent].Depth + 1
			}
			calls = append(calls, c)
		}
	}
	return calls
}

// isBody reports whether a node is the body of the method that the call site calls.
func (c *call) isBody(node *arthas.TraceNode) bool {
	return c.callSite && !node.CallSite && c.Class == node.Class && c.Method == node.Method
}

func newCall(node *arthas.TraceNode, parent int) call {
	c := call{parent: parent, callSite: node.CallSite, Node: javamethods.Node{
		End: durationOf(node).Duration, Class: node.Class, Method: node.Method, Line: max(node.Line, 0), Threw: node.Throws,
	}}
	if node.Calls > 1 {
		c.Repeated = &javamethods.Repeated{
			Calls: node.Calls, Least: node.Min.Duration, Greatest: node.Max.Duration, Total: node.Total.Duration,
			HasTimes: node.Min.Known && node.Max.Known && node.Total.Known,
		}
	}
	return c
}

// durationOf returns the duration of all calls of a node.
func durationOf(node *arthas.TraceNode) arthas.Cost {
	if node.Calls <= 1 && !node.Total.Known {
		return node.Last
	}
	return node.Total
}

// traceID returns the ID of another tracer if it is an ID of W3C. Otherwise it returns the text as a foreign one.
func traceID(of string) (id [16]byte, foreign string) {
	if decodeID(id[:], of); id != [16]byte{} {
		return id, ""
	}
	return id, of
}

// spanID returns the ID of a span, or zero if it is none of W3C.
func spanID(of string) (id [8]byte) {
	decodeID(id[:], of)
	return id
}

// decodeID decodes an ID in hexadecimal digits. It stays zero if the text is none of its length.
func decodeID(id []byte, of string) {
	if len(of) != 2*len(id) {
		return
	}
	if _, err := hex.Decode(id, []byte(of)); err != nil {
		clear(id)
	}
}
