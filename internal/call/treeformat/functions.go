// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package treeformat

import (
	"cmp"
	"slices"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

// Function is the sum of all calls of a function, in all paths.
type Function struct {
	// Name is printable. It distinguishes truncated calls.
	Name          string
	Calls, Errors uint64
	// Began is how many of Errors began in the function: no failed callee explains them.
	Began uint64
	Self  int64
	// Total counts calls of a function by itself once. Sums beyond the range of Self and Total are
	// the largest or smallest number.
	Total int64
	// flat and cumulative are pprof's values: the function's own value, and that of all stacks with
	// the function.
	flat, cumulative int64
}

// Functions sums the snapshot up by functions: those with most self time first.
func Functions(s calltree.Snapshot) []Function {
	all := functionsBy(s.Nodes, Value{})
	slices.SortFunc(all, func(a, b Function) int {
		return cmp.Or(cmp.Compare(b.Self, a.Self), cmp.Compare(b.Total, a.Total), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// functionsBy sums up nodes by functions, in the order of their first nodes.
func functionsBy(nodes []calltree.Node, by Value) []Function {
	var (
		all     []Function
		numbers = numbers{map[function]int{}, map[string]int{}}
		value   = by.function()
		w       = weights(nodes, value)
		stack   []int // of the current node: numbers of functions
		on      []int // by number: how many times the function is on the stack
		depths  = depthsOf(nodes)
		failed  = failedCallees(nodes)
	)
	for i := range nodes {
		n := &nodes[i]
		number := numbers.of(n)
		if number == len(all) {
			all = append(all, Function{Name: nameOf(n)})
			on = append(on, 0)
		}
		for above := int(depths[i]) - 1; len(stack) > above; stack = stack[:len(stack)-1] {
			on[stack[len(stack)-1]]--
		}
		f := &all[number]
		f.Calls += n.Calls
		f.Errors += n.Errors
		f.Began += n.Errors - min(n.Errors, failed[i])
		f.Self = addSigned(f.Self, n.Self)
		f.flat = add(f.flat, max(value(n), 0))
		if on[number] == 0 {
			f.Total = addSigned(f.Total, n.Total)
			f.cumulative = add(f.cumulative, w[i])
		}
		stack = append(stack, number)
		on[number]++
	}
	return all
}

// failedCallees returns, for each node, the number of failed calls of its children.
func failedCallees(nodes []calltree.Node) []uint64 {
	failed := make([]uint64, len(nodes))
	for i := range nodes {
		if parent := nodes[i].Parent; parent >= 0 {
			failed[parent] += nodes[i].Errors
		}
	}
	return failed
}

// numbers are the numbers of functions, from 0 on. Functions with the same printed name are one.
type numbers struct {
	byFunction map[function]int
	byName     map[string]int
}

func (ns numbers) of(n *calltree.Node) int {
	key := function{name: n.Function, truncated: n.Mark == calltree.Truncated, leftOut: isLeftOut(n)}
	number, ok := ns.byFunction[key]
	if ok {
		return number
	}
	name := nameOf(n)
	if number, ok = ns.byName[name]; !ok {
		number = len(ns.byName)
		ns.byName[name] = number
	}
	ns.byFunction[key] = number
	return number
}
