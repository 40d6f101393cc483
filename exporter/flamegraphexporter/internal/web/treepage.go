// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/call/treeformat"
	"github.com/callbraid/callbraid/internal/componentkit/figures"
)

// mostTraces is how many traces, and mostFunctions how many functions, a page lists.
const (
	mostTraces    = 50
	mostFunctions = 25
)

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
	Paths       int
	Functions   []treeformat.Function
	Notes       []string
	Windows     []windowLink
	Traces      []calltree.TraceSummary
	TraceFiles  *traceFiles
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
	return h.whileSent(page.Len(), func() { writeHTML(w, page) })
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
		Title:     shownName(s.Service),
		Address:   t.address(),
		Service:   calltree.Service{Name: s.Service},
		Kind:      s.Kind,
		Window:    t.isWindow(),
		From:      s.From,
		To:        s.To,
		Paths:     len(s.Nodes),
		Functions: functions[:min(mostFunctions, len(functions))],
		Notes:     treeformat.Notes(s),
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
	}
	return &view, nil
}

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
