// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"net/url"
	"slices"
	"strconv"

	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/call/treediff"
	"github.com/callbraid/callbraid/internal/call/treeformat"
	"github.com/callbraid/callbraid/internal/componentkit/figures"
)

// Parameters of the page: the addresses of two trees, the measure, the scale, and the path that is shown alone.
const (
	queryBefore = "before"
	queryAfter  = "after"
	queryBy     = "by"
	queryScale  = "scale"
	queryAt     = "at"
)

// mostFunctions is how many functions the page lists. mostOfQuestion is how many functions answer one question of the page of
// a tree.
const (
	mostFunctions  = 25
	mostOfQuestion = 8
)

// measure is what the page compares.
type measure struct {
	// Key is the text in addresses. [comparison.Word] has the text of pages.
	Key string
	// width is the value of a path that the widths of frames show, without the paths below it.
	width func(*treediff.Values) float64
	// value is the value that colours and the list compare. ok is false if there is none.
	value func(*treediff.Values) (value float64, ok bool)
}

func selfTime(v *treediff.Values) float64 { return float64(v.Self) }
func calls(v *treediff.Values) float64    { return float64(v.Calls) }

var measures = []measure{
	{"time", selfTime, func(v *treediff.Values) (float64, bool) { return float64(v.Total), true }},
	{"calls", calls, func(v *treediff.Values) (float64, bool) { return float64(v.Calls), true }},
	{"call", selfTime, func(v *treediff.Values) (float64, bool) {
		if v.Calls == 0 {
			return 0, false
		}
		return float64(v.Total) / float64(v.Calls), true
	}},
}

// equalScale is the scale at which both trees have the same total.
const equalScale = "equal"

// comparison is the content of the page. If a tree is not chosen yet, it has only the form.
type comparison struct {
	Root, Title   string
	Choices       []choice
	MoreChoices   bool
	Measures      []measure
	By            measure
	Equal         bool
	Before, After side
	Both          bool // both trees are chosen
	Totals        comparedFunction
	Rows          []comparedFunction
	Alone         string // the function that is shown alone, or nothing
	Pictures      []picture

	trees  [2]tree
	merged []treediff.Node
	factor float64 // of all values before
	at     uint64  // the path that is shown alone; 0: all
}

// side is one of the trees.
type side struct {
	Address, Label string
	Snapshot       calltree.Snapshot
	Notes          []string
	functions      []treeformat.Function
}

// comparedFunction is a function with its values in both trees, as pages show them.
type comparedFunction struct {
	Name                    string
	Calls, Self, Call       [2]string
	CallsBy, SelfBy, CallBy string // the differences
	Only                    string // the only tree that has it, or nothing
}

// picture is a flame graph of the page.
type picture struct {
	Title string
	SVG   template.HTML
}

// read reads the query.
func (c *comparison) read(query url.Values) error {
	c.Before.Address, c.After.Address = query.Get(queryBefore), query.Get(queryAfter)
	by := cmp.Or(query.Get(queryBy), measures[0].Key)
	found := slices.IndexFunc(measures, func(m measure) bool { return m.Key == by })
	if found < 0 {
		return badRequestf("%s: expected time, calls or call, got %.20q", queryBy, by)
	}
	c.By = measures[found]
	switch scale := query.Get(queryScale); scale {
	case "", "real":
	case equalScale:
		c.Equal = true
	default:
		return badRequestf("%s: expected real or %s, got %.20q", queryScale, equalScale, scale)
	}
	if at := query.Get(queryAt); at != "" {
		path, err := strconv.ParseUint(at, 16, 64)
		if err != nil {
			return badRequestf("%s: expected the number of a path, got %.20q", queryAt, at)
		}
		c.at = path
	}
	return nil
}

// list lists the functions that differ most by the measure.
func (c *comparison) list() {
	type pair struct{ before, after treeformat.Function }
	pairs := map[string]*pair{}
	of := func(name string) *pair {
		p, ok := pairs[name]
		if !ok {
			p = &pair{}
			pairs[name] = p
		}
		return p
	}
	var total pair
	for _, f := range c.Before.functions {
		of(f.Name).before = f
		total.before.Calls += f.Calls
		total.before.Self += f.Self
	}
	for _, f := range c.After.functions {
		of(f.Name).after = f
		total.after.Calls += f.Calls
		total.after.Self += f.Self
	}
	total.before.Total, total.after.Total = total.before.Self, total.after.Self
	c.Totals = c.compared("all functions", &total.before, &total.after)
	type ranked struct {
		name   string
		weight float64
	}
	all := make([]ranked, 0, len(pairs))
	for name, p := range pairs {
		if weight := c.weight(&p.before, &p.after); weight > 0 {
			all = append(all, ranked{name, weight})
		}
	}
	slices.SortFunc(all, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.name, b.name))
	})
	for _, f := range all[:min(len(all), mostFunctions)] {
		c.Rows = append(c.Rows, c.compared(f.name, &pairs[f.name].before, &pairs[f.name].after))
	}
}

// weight is how much a function differs by the measure. For the time of a call it is the time that the difference makes
// for all calls that both trees have.
func (c *comparison) weight(before, after *treeformat.Function) float64 {
	switch c.By.Key {
	case "calls":
		return math.Abs(float64(after.Calls) - c.factor*float64(before.Calls))
	case "call":
		return math.Abs(perCall(after)-perCall(before)) * float64(min(before.Calls, after.Calls))
	}
	return math.Abs(float64(after.Self) - c.factor*float64(before.Self))
}

func perCall(f *treeformat.Function) float64 {
	if f.Calls == 0 {
		return 0
	}
	return float64(f.Total) / float64(f.Calls)
}

// compared formats the values of a function.
func (c *comparison) compared(name string, before, after *treeformat.Function) comparedFunction {
	f := comparedFunction{Name: name}
	callsBefore, selfBefore := c.factor*float64(before.Calls), c.factor*float64(before.Self)
	f.Calls = [2]string{figures.Count(countOf(callsBefore)), figures.Count(after.Calls)}
	f.Self = [2]string{c.amount(selfBefore), c.amount(float64(after.Self))}
	f.CallsBy, f.SelfBy = change(callsBefore, float64(after.Calls)), change(selfBefore, float64(after.Self))
	f.Call = [2]string{"–", "–"}
	switch {
	case before.Calls == 0:
		f.Only = "after"
	case after.Calls == 0:
		f.Only = "before"
	}
	if before.Calls > 0 {
		f.Call[0] = c.amount(perCall(before))
	}
	if after.Calls > 0 {
		f.Call[1] = c.amount(perCall(after))
	}
	if before.Calls > 0 && after.Calls > 0 {
		f.CallBy = change(perCall(before), perCall(after))
	}
	return f
}

// countOf returns the nearest count. Floats above the range are the largest one.
func countOf(calls float64) uint64 {
	if calls >= math.MaxUint64 {
		return math.MaxUint64
	}
	return uint64(calls + 0.5)
}

// largestAmount bounds amounts, which multiplying can make larger than numbers of trees.
const largestAmount = 1 << 62

// amount formats a value of the trees.
func (c *comparison) amount(v float64) string {
	view := treeView{Kind: c.After.Snapshot.Kind}
	return view.Value(int64(min(max(v, -largestAmount), largestAmount)))
}

// change formats the change of a value as a part of it.
func change(before, after float64) string {
	switch {
	case before == after:
		return "="
	case before <= 0:
		return "new"
	case after <= 0:
		return "gone"
	case after >= 10*before:
		if ratio := after / before; ratio < 1000 {
			return "×" + strconv.FormatFloat(ratio, 'g', 3, 64)
		}
		return "over ×1000"
	}
	return fmt.Sprintf("%+.1f%%", 100*(after/before-1))
}

// link returns the address of the page with these trees.
func (c *comparison) link(before, after string) string {
	query := url.Values{queryBefore: {before}, queryAfter: {after}, queryBy: {c.By.Key}}
	if c.Equal {
		query.Set(queryScale, equalScale)
	}
	return "compare?" + query.Encode()
}

// Link is the address of the page with all paths, and Swapped that with the trees in the other order.
func (c *comparison) Link() string    { return c.link(c.Before.Address, c.After.Address) }
func (c *comparison) Swapped() string { return c.link(c.After.Address, c.Before.Address) }

// Unlisted returns the address of a tree that the form does not list, or nothing.
func (c *comparison) Unlisted(address string) string {
	if address == "" || slices.ContainsFunc(c.Choices, func(o choice) bool { return o.Address == address }) {
		return ""
	}
	return address
}

// Sides are the names of the fields with the trees, and Address is the address in one.
func (c *comparison) Sides() []string { return []string{queryBefore, queryAfter} }
func (c *comparison) Address(side string) string {
	if side == queryBefore {
		return c.Before.Address
	}
	return c.After.Address
}

// Word returns the name of a measure, or of own values ("self"), for the kind of the trees.
func (c *comparison) Word(key string) string {
	of := [...]string{"calls", "time", "self time", "time of a call"}
	if c.After.Snapshot.Kind != calltree.Calls {
		of = [...]string{"samples", "value", "self value", "value of a sample"}
	}
	return of[slices.Index([]string{"calls", "time", "self", "call"}, key)]
}

// Groups are the groups of columns in the list.
func (c *comparison) Groups() []string { return []string{"self", "calls", "call"} }
