// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/call/treediff"
	"github.com/callbraid/callbraid/internal/call/treeformat"
)

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
