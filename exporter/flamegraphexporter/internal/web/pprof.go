// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/callbraid/callbraid/exporter/flamegraphexporter/internal/pprofpages"
	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/call/treeformat"
)

// pageBounds bound the tree of a page, because pprof and the browser need time for each path.
// Smaller paths are summed up. If a user focuses on one, it is large enough, because focusing is
// done first.
var pageBounds = map[string]treeformat.Bounds{
	pprofpages.Peek: {Nodes: 4_000, Frames: 40_000},
	// Only for queries that a list of functions cannot answer.
	pprofpages.Top: {Nodes: 100_000, Frames: 8_000_000},
}

// Other parameters of pprof's pages: the sample type and the order of lists.
const (
	querySampleIndex = "si"
	querySort        = "sort"
	// queryCount is not for top: it always lists 500 functions.
	queryCount = "n"
)

// pprofPage serves a page of pprof.
func (h *Handler) pprofPage(w http.ResponseWriter, r *http.Request, t tree) error {
	name := r.PathValue("page")
	if _, ok := pageBounds[name]; !ok {
		http.NotFound(w, r)
		return nil
	}
	page, err := h.renderPage(r.Context(), name, r.URL.Query(), t)
	if err != nil {
		return err
	}
	return h.whileSent(len(page.Body), func() { writePage(w, page) })
}

// renderPage has pprof render a page of the tree, when it is its turn.
func (h *Handler) renderPage(ctx context.Context, name string, query url.Values, t tree) (pprofpages.Page, error) {
	turn := h.turn(h.pages)
	defer turn.end()
	s, err := t.inTurn(ctx, &turn)
	if err != nil {
		return pprofpages.Page{}, err
	}
	matching, end := context.WithTimeoutCause(ctx, matchTime, errSlow)
	defer end()
	p, err := profileFor(matching, name, query, s)
	if err != nil {
		return pprofpages.Page{}, err
	}
	return pprofpages.Render(ctx, name, query, p)
}

// profileFor returns the profile of a page. It removes from the query the parameters that it
// applies itself. For the others it checks that pprof's matching ends in time.
func profileFor(ctx context.Context, name string, query url.Values, s calltree.Snapshot) (*profile.Profile, error) {
	by, err := treeformat.SampleValue(s.Kind, query.Get(querySampleIndex))
	if err != nil {
		return nil, badRequest{err}
	}
	expressions, err := expressionsOf(query)
	if err != nil {
		return nil, err
	}
	notes := treeformat.Notes(s)
	s, comments, err := refined(ctx, s, expressions)
	if err != nil {
		return nil, err
	}
	for _, of := range refinements {
		if name != pprofpages.Peek || of.parameter != queryFocus { // peek searches for the focused function
			query.Del(of.parameter)
		}
	}
	plain := isPlain(query)
	if len(comments) > 0 { // ignored parts only count for the percentages
		query.Set(queryIgnore, "^"+regexp.QuoteMeta(treeformat.LeftOut)+"$")
	}
	var p *profile.Profile
	if name == pprofpages.Top && plain {
		p = treeformat.ListProfile(s, by)
	} else {
		p = treeformat.Profile(treeformat.Reduce(s, by, pageBounds[name]))
	}
	p.Comments = append(comments, notes...)
	for parameter, e := range expressions {
		if parameter != queryIgnore && query.Has(parameter) {
			if err := e.checkTime(ctx, p); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

// isPlain reports whether a query of top does not change stacks, or their number.
func isPlain(query url.Values) bool {
	for parameter := range query {
		switch parameter {
		case querySampleIndex, querySort, queryCount:
		default:
			return false
		}
	}
	return true
}

// refinements are applied to the snapshot instead of leaving them to pprof. So small paths are
// found after them, and their time is bounded. The names are those of pprof's menu.
var refinements = []struct{ parameter, name string }{
	{queryFocus, "Focus"}, {queryIgnore, "Ignore"}, {queryHide, "Hide"}, {queryShow, "Show"}, {queryShowFrom, "Show from"},
}

// refined returns the part of the snapshot for the query, and comments about it.
func refined(ctx context.Context, s calltree.Snapshot, expressions map[string]*expression) (calltree.Snapshot, []string, error) {
	var comments []string
	for _, of := range refinements {
		if e := expressions[of.parameter]; e != nil {
			comments = append(comments, of.name+": "+treeformat.Printable(e.String()))
		}
	}
	within := func(parameter string) treeformat.Matcher { return expressions[parameter].within(ctx) }
	s, err := treeformat.Focus(s, within(queryFocus), within(queryIgnore))
	if err != nil {
		return s, nil, err
	}
	s, err = treeformat.ShowFrames(s, treeformat.Frames{
		Hide: within(queryHide), Show: within(queryShow), From: within(queryShowFrom),
	})
	return s, comments, err
}

func writePage(w http.ResponseWriter, page pprofpages.Page) {
	if page.Status != http.StatusOK {
		answerText(w, strings.TrimSpace(string(page.Body)), page.Status)
		return
	}
	// pprof's pages need their own scripts and styles.
	w.Header().Set("Content-Security-Policy", fmt.Sprintf("default-src 'none'; script-src 'nonce-%[1]s'; style-src 'nonce-%[1]s'; "+
		"img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'", page.Nonce))
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(page.Body) // the client has gone, or reads too slowly
}
