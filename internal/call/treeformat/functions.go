// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package treeformat

import (
	"cmp"
	"slices"

	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/call/keytable"
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
	all := functionsOf(s.Nodes, nil, nil)
	slices.SortFunc(all, func(a, b Function) int {
		return cmp.Or(cmp.Compare(b.Self, a.Self), cmp.Compare(b.Total, a.Total), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// openFunction is a function on the stack of the current node.
type openFunction struct {
	node, number int32
	// errors are the failed calls of the node, and failed those of its children so far.
	errors, failed uint64
}

// functionsOf sums up nodes by functions, in the order of their first nodes. Values of pprof are summed up if value returns a
// node's own one, and cumulative has that of each node with all below it.
func functionsOf(nodes []calltree.Node, value func(*calltree.Node) int64, cumulative []int64) []Function {
	var (
		all     []Function
		numbers = numbers{byName: map[string]uint32{}}
		stack   []openFunction
		on      []int // by number: how many times the function is on the stack
	)
	leave := func() {
		top := &stack[len(stack)-1]
		all[top.number].Began += top.errors - min(top.errors, top.failed)
		on[top.number]--
		stack = stack[:len(stack)-1]
	}
	for i := range nodes {
		n := &nodes[i]
		number := numbers.of(n)
		if number == len(all) {
			all = append(all, Function{Name: nameOf(n)})
			on = append(on, 0)
		}
		for len(stack) > 0 && stack[len(stack)-1].node != n.Parent {
			leave()
		}
		if len(stack) > 0 {
			stack[len(stack)-1].failed += n.Errors
		}
		f := &all[number]
		f.Calls += n.Calls
		f.Errors += n.Errors
		f.Self = addSigned(f.Self, n.Self)
		if on[number] == 0 {
			f.Total = addSigned(f.Total, n.Total)
		}
		if value != nil {
			f.flat = add(f.flat, max(value(n), 0))
			if on[number] == 0 {
				f.cumulative = add(f.cumulative, cumulative[i])
			}
		}
		stack = append(stack, openFunction{int32(i), int32(number), n.Errors, 0})
		on[number]++
	}
	for len(stack) > 0 {
		leave()
	}
	return all
}

// numbers are the numbers of functions, from 0 on. Functions with the same printed name are one.
type numbers struct {
	byText keytable.TextsByAddress // finds most, because the nodes of a tree share the texts of names
	byName map[string]uint32
}

func (ns *numbers) of(n *calltree.Node) int {
	var variant uint8 // of the name, as it is printed
	switch {
	case n.Mark == calltree.Truncated:
		variant = 1
	case isLeftOut(n):
		variant = 2
	}
	number, ok := ns.byText.Find(n.Function, variant)
	if ok {
		return int(number)
	}
	name := nameOf(n)
	if number, ok = ns.byName[name]; !ok {
		number = uint32(len(ns.byName))
		ns.byName[name] = number
	}
	ns.byText.Put(n.Function, variant, number)
	return int(number)
}
