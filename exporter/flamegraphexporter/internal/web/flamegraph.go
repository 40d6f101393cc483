// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/callbraid/callbraid/exporter/flamegraphexporter/internal/d3flamegraph"
	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/call/treeformat"
)

// Parameters of the flame graph beside those of pprof's pages: the frame that is shown alone, the search, and the width of
// the picture in pixels.
const (
	queryAlone  = "at"
	querySearch = "q"
	queryWidth  = "width"
)

// Bounds of a picture: its width in pixels, and the number of its frames. The library draws an element for each.
const (
	usualWidth     = 1400
	narrowest      = 100
	widest         = 4000
	mostFlameNodes = 3000
)

// flameGraph is the content of the page with a flame graph.
type flameGraph struct {
	Root, Title, Service string
	Kind                 calltree.Kind
	Scripts              []string
	Types                []*profile.ValueType
	Type, Search         string
	Kept                 []parameter // of the address
	View                 *flameView
}

// parameter is a parameter of an address.
type parameter struct{ Name, Value string }

// flameView is what a flame graph shows.
type flameView struct {
	*treeformat.Flame
	// Unit is that of widths, and TimeUnit that of times or values of the kind.
	Unit     string `json:"unit"`
	TimeUnit string `json:"timeUnit"`
	IsCalls  bool   `json:"isCalls"`
	// Missing describes data that the picture lacks. Refined are the refinements of the query.
	Missing []string `json:"missing"`
	Refined []string `json:"refined"`
}

// flameGraphPage serves the page with the flame graph of a tree.
func (h *Handler) flameGraphPage(w http.ResponseWriter, r *http.Request, t tree) error {
	query := r.URL.Query()
	s, view, err := h.flameView(r.Context(), query, t)
	if err != nil {
		return err
	}
	root := strings.Repeat("../", strings.Count(r.URL.EscapedPath(), "/")-1)
	types := treeformat.SampleTypes(s.Kind)
	by, _ := treeformat.SampleValue(s.Kind, query.Get(querySampleIndex)) // it was valid for the view
	page := &flameGraph{
		Root: root, Title: shownName(s.Service), Service: s.Service, Kind: s.Kind,
		Scripts: []string{flameScripts + d3flamegraph.Selection, flameScripts + d3flamegraph.FlameGraph, flameScript},
		Types:   types, Type: types[by.Column()].Type, Search: query.Get(querySearch), View: view,
	}
	for _, of := range refinements {
		if value := query.Get(of.parameter); value != "" {
			page.Kept = append(page.Kept, parameter{of.parameter, value})
		}
	}
	body, err := made("flamegraph.html", page)
	if err != nil {
		return err
	}
	return h.whileSent(body.Len(), func() { writeHTML(w, r, body) })
}

// flameGraphData serves what the page shows after it has changed its address.
func (h *Handler) flameGraphData(w http.ResponseWriter, r *http.Request, t tree) error {
	_, view, err := h.flameView(r.Context(), r.URL.Query(), t)
	if err != nil {
		return err
	}
	body, err := json.Marshal(view)
	if err != nil {
		return err
	}
	return h.whileSent(len(body), func() {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body) // the client has gone, or reads too slowly
	})
}

// flameView makes a flame graph of a tree in its turn. It returns the tree, too.
func (h *Handler) flameView(ctx context.Context, query url.Values, t tree) (calltree.Snapshot, *flameView, error) {
	turn := h.turn(h.pages)
	defer turn.end()
	s, err := t.inTurn(ctx, &turn)
	if err != nil {
		return s, nil, err
	}
	matching, end := context.WithTimeoutCause(ctx, matchTime, errSlow)
	defer end()
	view, err := newFlameView(matching, query, s)
	return s, view, err
}

// newFlameView makes the flame graph of a query.
func newFlameView(ctx context.Context, query url.Values, s calltree.Snapshot) (*flameView, error) {
	by, err := treeformat.SampleValue(s.Kind, query.Get(querySampleIndex))
	if err != nil {
		return nil, badRequest{err}
	}
	expressions, err := expressionsOf(query)
	if err != nil {
		return nil, err
	}
	if expressions[queryPrune] != nil {
		return nil, badRequestf("%s: the flame graph shows whole stacks: leave it out", queryPrune)
	}
	search, err := searchOf(query.Get(querySearch))
	if err != nil {
		return nil, err
	}
	width, err := widthOf(query.Get(queryWidth))
	if err != nil {
		return nil, err
	}
	view := &flameView{
		Unit: treeformat.SampleTypes(s.Kind)[by.Column()].Unit, TimeUnit: "nanoseconds", IsCalls: s.Kind == calltree.Calls,
		Missing: []string{}, Refined: []string{}, // not null for the script
	}
	view.Missing = append(view.Missing, treeformat.Notes(s)...)
	if !view.IsCalls {
		view.TimeUnit = treeformat.Printable(s.Kind.Unit)
	}
	s, comments, err := refined(ctx, s, expressions)
	if err != nil {
		return nil, err
	}
	view.Refined = append(view.Refined, comments...)
	view.Flame, err = treeformat.NewFlame(s, treeformat.FlameOptions{
		By: by, At: query.Get(queryAlone), Search: search.within(ctx), Pixels: width, Frames: mostFlameNodes,
	})
	return view, err
}

// searchOf returns the expression of a search, without regard to case; nil: there is none. A text that is no expression
// is searched as it is.
func searchOf(text string) (*expression, error) {
	if text == "" {
		return nil, nil
	}
	const anyCase = "(?i)"
	text = strings.ToValidUTF8(text, "\ufffd")
	if _, err := regexp.Compile(anyCase + text); err != nil {
		text = regexp.QuoteMeta(text)
	}
	e, err := newExpression(anyCase + text)
	if err != nil {
		return nil, badRequestf("%s: %w", querySearch, err)
	}
	return e, nil
}

// widthOf returns the width of the picture.
func widthOf(text string) (int, error) {
	if text == "" {
		return usualWidth, nil
	}
	width, err := strconv.Atoi(text)
	if err != nil || width < 0 {
		return 0, badRequestf("%s: expected a number of pixels, got %.20q", queryWidth, text)
	}
	return min(max(width, narrowest), widest), nil
}

// flameScripts is where the library is, and flameScript and flameStyle are our own parts, relative to the page of all
// services.
const (
	flameScripts = "d3/"
	flameScript  = "flamegraph.js"
	flameStyle   = "flamegraph.css"
)
