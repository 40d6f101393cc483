// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"cmp"
	"context"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/call/treeformat"
	"github.com/callbraid/callbraid/internal/componentkit/figures"
)

// mostTraces is how many traces a page lists.
const mostTraces = 50

// treeView is the content of the page of a service, of a kind of its profiles, or of a window.
type treeView struct {
	Root, Title string // Root is the way back to the page of all services
	Address     string // of the tree, from there
	Service     calltree.Service
	Kind        calltree.Kind
	Window      bool
	Stored      string // the stored window, or empty
	Days        []storedDay
	From, To    time.Time
	Paths       uint64
	Notes       []string
	// Takes are the functions with most self time, of Self together. Fails are those with most failures. Now is for services
	// only, and Changed is nil if there is no tree to compare with.
	Takes, Fails []treeformat.Function
	Self         uint64
	Now          *nowView
	Changed      *changes
	Windows      []windowLink
	Traces       []calltree.TraceSummary
	TraceFiles   *traceFiles
}

type windowLink struct {
	Number   uint64
	Kind     calltree.Kind
	From, To time.Time
}

// Value is a value of the tree as a person reads it.
func (v *treeView) Value(value int64) string {
	unit := v.Kind.Unit
	if v.Kind == calltree.Calls {
		unit = "nanoseconds"
	}
	if value < 0 {
		return "-" + v.Value(-max(value, -math.MaxInt64))
	}
	switch unit {
	case "nanoseconds", "ns":
		return shownLength(time.Duration(value))
	case "bytes", "By":
		return figures.Bytes(uint64(value))
	case "count", "":
		return figures.Count(uint64(value))
	}
	return figures.Count(uint64(value)) + " " + shownName(unit)
}

// treePage serves the page about a tree.
func (h *Handler) treePage(w http.ResponseWriter, r *http.Request, t tree) error {
	view, err := h.view(r.Context(), t)
	if err != nil {
		return err
	}
	view.Root = strings.Repeat("../", strings.Count(r.URL.EscapedPath(), "/")-1)
	if t.window == 0 && t.kind == calltree.Calls {
		view.TraceFiles = h.listTraceFiles(view.Root)
	}
	page, err := made("tree.html", view)
	if err != nil {
		return err
	}
	return h.whileSent(page.Len(), func() { writeHTML(w, r, page) })
}

// view returns the content of a tree's page, built in its turn.
func (h *Handler) view(ctx context.Context, t tree) (*treeView, error) {
	turn := h.turn(h.pages)
	defer turn.end()
	s, err := t.inTurn(ctx, &turn)
	if err != nil {
		return nil, err
	}
	functions := treeformat.Functions(s)
	if !t.isWindow() && t.kind == calltree.Calls {
		// Memory for the list of traces.
		of := h.turn(h.pages)
		defer of.end()
		if err := of.hold(keptMemory * int64(h.trees.Usage().Kept)); err != nil {
			return nil, err
		}
	}
	view := treeView{
		Title:   shownName(s.Service),
		Address: t.address(),
		Service: calltree.Service{Name: s.Service},
		Kind:    s.Kind,
		Window:  t.isWindow(),
		From:    s.From,
		To:      s.To,
		Paths:   uint64(len(s.Nodes)),
		Notes:   treeformat.Notes(s),
		Takes:   functions[:min(mostOfQuestion, len(functions))],
		Fails:   failing(functions),
	}
	for i := range functions {
		view.Self += uint64(max(functions[i].Self, 0))
	}
	if t.window == 0 {
		view.Days = h.storedDays(t)
	}
	if t.stored != nil {
		view.Stored = storedWindow(t.at)
		view.Title += ", " + view.Stored
	}
	if !t.isWindow() {
		h.addService(&view)
		if t.kind == calltree.Calls {
			view.Now = newNowView(t.service)
		}
	}
	ofOther := h.turn(h.pages)
	defer ofOther.end()
	view.Changed, err = h.changesOf(ctx, t, s, functions, &ofOther)
	return &view, err
}

// failing are the functions with most failures: those first in which most of them began.
func failing(functions []treeformat.Function) (all []treeformat.Function) {
	for _, f := range functions {
		if f.Errors > 0 {
			all = append(all, f)
		}
	}
	slices.SortStableFunc(all, func(a, b treeformat.Function) int {
		return cmp.Or(cmp.Compare(b.Began, a.Began), cmp.Compare(b.Errors, a.Errors))
	})
	return all[:min(mostOfQuestion, len(all))]
}

// Width is the width of a function's bar in percent: that of the first function is 100.
func (v *treeView) Width(f treeformat.Function) int64 {
	return int64(100 * float64(max(f.Self, 0)) / float64(max(v.Takes[0].Self, 1)))
}

// Part is the part of a function's self time in that of the tree, in percent.
func (v *treeView) Part(f treeformat.Function) string { return part(uint64(max(f.Self, 0)), v.Self) }

// addService adds the data of the service beside the tree.
func (h *Handler) addService(view *treeView) {
	for _, service := range h.trees.Services() {
		if service.Name == view.Service.Name {
			view.Service = service
			if service.CountedTwice && view.Kind == calltree.Calls {
				view.Notes = append(view.Notes, "Spans and profiles of call paths both count here, and calls count twice: set count_spans to false.")
			}
		}
	}
	for _, w := range h.windows.of(view.Service.Name) {
		view.Windows = append(view.Windows, windowLink{w.number, w.snapshot.Kind, w.snapshot.From, w.snapshot.To})
	}
	if view.Kind == calltree.Calls {
		traces := h.trees.Traces(view.Service.Name)
		view.Traces = traces[:min(mostTraces, len(traces))]
	}
}
