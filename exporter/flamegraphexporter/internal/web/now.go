// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/call/treeformat"
)

// nowLength is the length of the window for slow functions: two intervals of the connector stack_pairing.
const nowLength = 10 * time.Second

// nowView is the part of a service's page about the present. Before a measurement it has only the form.
type nowView struct {
	Root, Title string
	Service     string
	Length      time.Duration
	IsMeasured  bool
	To          time.Time
	Calls       uint64
	// Slow are the functions of the window: those first that take longer than usual, then those with most self time. AnySlower:
	// one of them takes longer than usual.
	Slow      []slowFunction
	AnySlower bool
}

// slowFunction is a function in the window, beside all of its earlier calls.
type slowFunction struct {
	Name  string
	Calls uint64
	// Now and Usual are the self time of a call, as pages show it. Change is the difference, and Class its style.
	Now, Usual, Change, Class string

	excess, self int64
}

// measureNow collects a short window, and serves the part of the page about it.
func (h *Handler) measureNow(w http.ResponseWriter, r *http.Request, t tree) error {
	if t.isWindow() || t.kind != calltree.Calls {
		return badRequestf("expected the address of a service, got that of a window or a profile")
	}
	view, err := h.now(w, r, t)
	if err != nil {
		return err
	}
	view.Root = strings.Repeat("../", strings.Count(r.URL.EscapedPath(), "/")-1)
	page, err := made("now.html", view)
	if err != nil {
		return err
	}
	return h.whileSent(page.Len(), func() { writeHTML(w, r, page) })
}

// now collects the window, and compares it with all calls, in its turn.
func (h *Handler) now(w http.ResponseWriter, r *http.Request, t tree) (*nowView, error) {
	turn, ofAll := h.turn(h.pages), h.turn(h.pages)
	defer turn.end()
	defer ofAll.end()
	window, err := h.collect(w, r, t.service, t.kind, nowLength, &turn)
	if err != nil {
		return nil, err
	}
	if err := ofAll.hold(ofPaths(t.paths())); err != nil {
		return nil, err
	}
	all, err := t.now(r.Context())
	if err != nil {
		return nil, err
	}
	view := newNowView(t.service)
	view.measure(window, all)
	return view, nil
}

func newNowView(service string) *nowView {
	return &nowView{Title: "Slow now", Service: service, Length: nowLength}
}

// measure fills the view by a window, and by all calls, which contain those of the window.
func (v *nowView) measure(window, all calltree.Snapshot) {
	v.IsMeasured, v.To = true, window.To
	usual := map[string]treeformat.Function{}
	for _, f := range treeformat.Functions(all) {
		usual[f.Name] = f
	}
	var sum int64
	for _, now := range treeformat.Functions(window) {
		if now.Calls == 0 {
			continue
		}
		v.Calls += now.Calls
		sum += max(now.Self, 0)
		earlier := usual[now.Name]
		earlier.Calls -= min(earlier.Calls, now.Calls)
		earlier.Self -= now.Self
		v.Slow = append(v.Slow, slowOf(&now, &earlier))
	}
	// A difference that makes less than a hundredth of the time is no news.
	for i := range v.Slow {
		if f := &v.Slow[i]; f.excess > 0 && f.excess*100 < sum {
			f.excess, f.Class = 0, ""
		}
	}
	slices.SortStableFunc(v.Slow, func(a, b slowFunction) int {
		return cmp.Or(cmp.Compare(b.excess, a.excess), cmp.Compare(b.self, a.self))
	})
	v.Slow = v.Slow[:min(mostOfQuestion, len(v.Slow))]
	v.AnySlower = len(v.Slow) > 0 && v.Slow[0].excess > 0
}

// slower is the part by which a call takes longer than usual, from which on the page counts it as slower. fewCalls are too few
// to know the usual time.
const (
	slower   = 0.2
	fewCalls = 10
)

// slowOf compares the calls of a function in a window with its earlier ones. The excess is the time that the window's calls
// took beyond the usual time.
func slowOf(now, earlier *treeformat.Function) slowFunction {
	each := float64(now.Self) / float64(now.Calls)
	f := slowFunction{Name: now.Name, Calls: now.Calls, Now: shownLength(time.Duration(each)), Usual: "–", Change: "new", self: now.Self}
	if earlier.Calls == 0 {
		return f
	}
	before := max(float64(earlier.Self)/float64(earlier.Calls), 0)
	f.Usual, f.Change = shownLength(time.Duration(before)), change(before, each)
	switch {
	case earlier.Calls < fewCalls:
	case each > before*(1+slower):
		f.excess, f.Class = int64((each-before)*float64(now.Calls)), "worse"
	case each < before*(1-slower):
		f.Class = "better"
	}
	return f
}
