// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"math"
	"net/http"
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

// compare serves the page that compares two trees.
func (h *Handler) compare(w http.ResponseWriter, r *http.Request) {
	c, err := h.comparison(r.Context(), r.URL.Query())
	if err == nil {
		page, failed := made("compare.html", c)
		if err = failed; err == nil {
			err = h.whileSent(page.Len(), func() { writeHTML(w, r, page) })
		}
	}
	h.answerError(w, r, err)
}

// comparison makes the content of the page in its turn.
func (h *Handler) comparison(ctx context.Context, query url.Values) (*comparison, error) {
	turn := h.turn(h.pages)
	defer turn.end()
	if err := turn.wait(ctx); err != nil {
		return nil, err
	}
	c := &comparison{Root: "./", Title: "Compare", Measures: measures}
	if err := c.read(query); err != nil {
		return nil, err
	}
	memory := serviceMemory * int64(h.trees.Usage().Services)
	for i, address := range [...]string{c.Before.Address, c.After.Address} {
		if address == "" {
			continue
		}
		t, err := h.treeAt(address)
		if err != nil {
			return nil, err
		}
		c.trees[i] = t
		memory += 2 * ofPaths(t.paths()) // the tree, and its part of the merged one with pictures
	}
	if err := turn.hold(memory); err != nil {
		return nil, err
	}
	c.Choices, c.MoreChoices = h.choices()
	if c.Before.Address == "" || c.After.Address == "" {
		if c.After.Address != "" {
			c.Before.Address = counterpart(c.trees[1], c.Choices)
		}
		return c, nil
	}
	for i, s := range [...]*side{&c.Before, &c.After} {
		snapshot, err := c.trees[i].now(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Address, err)
		}
		*s = sideOf(c.trees[i], snapshot, treeformat.Functions(snapshot))
		s.Notes = treeformat.Notes(snapshot)
	}
	if c.Before.Snapshot.Kind != c.After.Snapshot.Kind {
		return nil, badRequestf("expected two trees of the same kind, got %s and %s", c.Before.Label, c.After.Label)
	}
	return c, c.fill()
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

// fill compares the trees:
//
//  1. The paths of both trees are put on top of each other.
//  2. With the equal scale, all values before are multiplied, so that both totals are the same.
//  3. Functions are summed up in each tree, and those that differ most are listed.
//  4. The pictures are drawn: the difference, and both trees at the same scale.
func (c *comparison) fill() error {
	c.Both = true
	c.Title = c.Before.Label + " and " + c.After.Label
	c.merged = treediff.Merge(c.Before.Snapshot.Nodes, c.After.Snapshot.Nodes)
	c.factor = 1
	if c.Equal {
		var before, after float64
		for i := range c.merged {
			before += max(c.By.width(&c.merged[i].Before), 0)
			after += max(c.By.width(&c.merged[i].After), 0)
		}
		if before > 0 && after > 0 {
			c.factor = after / before
		}
	}
	c.list()
	if c.at != 0 {
		alone, ok := alone(c.merged, c.at)
		if !ok {
			return badRequestf("%s: expected the number of a path of one of the trees, got %x", queryAt, c.at)
		}
		c.merged, c.Alone = alone.nodes, shownName(alone.function)
	}
	c.draw()
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

// changes are the functions of two trees that differ most in time, for a page of one of them.
type changes struct {
	Before, After string // names of the trees
	Link          string // the address of their comparison, relative to the page of all services. Empty: it would be too long
	Rows          []comparedFunction
	// NoMemory: the other tree needs more memory than there is now.
	NoMemory bool
}

// changesOf compares a tree with its counterpart, or returns nil if there is none. All calls of a service are compared with
// its latest window as the earlier ones. Both totals are made equal, because the trees have different lengths.
func (h *Handler) changesOf(ctx context.Context, t tree, s calltree.Snapshot, functions []treeformat.Function, turn *turn) (*changes, error) {
	choices, _ := h.choices()
	address := counterpart(t, choices)
	if address == "" {
		return nil, nil
	}
	other, err := h.treeAt(address)
	if err != nil {
		return nil, err
	}
	if err := turn.hold(ofPaths(other.paths())); err != nil {
		return &changes{NoMemory: true}, nil // the page has the rest
	}
	snapshot, err := other.now(ctx)
	if err != nil {
		return nil, nil // it has just gone
	}
	c := &comparison{By: measures[0], Equal: true, factor: 1}
	c.Before, c.After = sideOf(other, snapshot, treeformat.Functions(snapshot)), sideOf(t, s, functions)
	if !t.isWindow() && other.isWindow() {
		c.Before, c.After = c.After, c.Before
	}
	before, after := selfOf(c.Before.Snapshot), selfOf(c.After.Snapshot)
	if before > 0 && after > 0 {
		c.factor = after / before
	}
	c.list()
	link := c.Link()
	if len(link) > maxQuery {
		link = "" // two very long names
	}
	return &changes{Before: c.Before.Label, After: c.After.Label, Link: link, Rows: c.Rows[:min(mostOfQuestion, len(c.Rows))]}, nil
}

func sideOf(t tree, s calltree.Snapshot, functions []treeformat.Function) side {
	label := ofKind(s.Service, s.Kind)
	if t.window != 0 {
		label += fmt.Sprintf(", window %d", t.window)
	}
	if t.stored != nil {
		label += ", " + storedWindow(t.at)
	}
	return side{Address: t.address(), Label: label, Snapshot: s, functions: functions}
}

// selfOf is the sum of all own values that are above 0.
func selfOf(s calltree.Snapshot) (sum float64) {
	for i := range s.Nodes {
		sum += max(float64(s.Nodes[i].Self), 0)
	}
	return sum
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
