// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"

	"github.com/callbraid/callbraid/internal/calltree"
)

// windows are those that were collected by the pages' form. They are kept, so that all
// pages show the same, as many as the options say: the oldest goes. One is kept however
// large it is.
type windows struct {
	mu   sync.Mutex
	last uint64 // number
	kept []window
}

type window struct {
	number   uint64
	snapshot calltree.Snapshot
}

// keep keeps a window and gives its number, which is above 0, and how many made room for it.
func (ws *windows) keep(s calltree.Snapshot, most, mostNodes int) (number uint64, dropped int) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.last++
	ws.kept = append(ws.kept, window{ws.last, s})
	nodes := 0
	for _, w := range ws.kept {
		nodes += len(w.snapshot.Nodes)
	}
	for len(ws.kept) > 1 && (len(ws.kept) > most || nodes > mostNodes) {
		nodes -= len(ws.kept[0].snapshot.Nodes)
		ws.kept = slices.Delete(ws.kept, 0, 1)
		dropped++
	}
	return ws.last, dropped
}

func (ws *windows) find(number uint64) (calltree.Snapshot, bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, w := range ws.kept {
		if w.number == number {
			return w.snapshot, true
		}
	}
	return calltree.Snapshot{}, false
}

// of gives those of a service, the latest first.
func (ws *windows) of(service string) []window {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	var all []window
	for _, w := range slices.Backward(ws.kept) {
		if w.snapshot.Service == service {
			all = append(all, w)
		}
	}
	return all
}

// collectWindow collects a window, and leads to it.
func (h *Handler) collectWindow(w http.ResponseWriter, r *http.Request) {
	number, err := h.newWindow(w, r)
	if err != nil {
		h.answerError(w, r, err)
		return
	}
	redirect(fmt.Sprintf("windows/%d/", number))(w, r)
}

func (h *Handler) newWindow(w http.ResponseWriter, r *http.Request) (uint64, error) {
	if err := r.ParseForm(); err != nil {
		return 0, badRequestf("expected a form: %w", err)
	}
	d, err := parseSeconds(r.PostForm.Get("seconds"))
	if err != nil {
		return 0, err
	}
	service, err := unescapeSegment(r.PostForm.Get("service"))
	if err != nil {
		return 0, err
	}
	kind, err := formKind(r.PostForm)
	if err != nil {
		return 0, err
	}
	turn := turn{of: h.pages}
	defer turn.end()
	s, err := h.collect(w, r, service, kind, d, &turn)
	if err != nil {
		return 0, err
	}
	number, dropped := h.windows.keep(s, h.options.MaxKeptWindows, h.options.MaxKeptWindowNodes)
	h.droppedWindows.Add(int64(dropped))
	return number, nil
}

// formKind is the kind that a form has: calls where it has none.
func formKind(form url.Values) (kind calltree.Kind, err error) {
	if kind.Type, err = unescapeSegment(form.Get("type")); err != nil {
		return kind, err
	}
	kind.Unit, err = unescapeSegment(form.Get("unit"))
	return kind, err
}
