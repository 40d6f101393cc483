// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/callbraid/callbraid/exporter/flamegraphexporter/internal/history"
	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/call/storedtree"
)

// History has stored windows. A [history.History] has them.
type History interface {
	// Services are those with windows, sorted by name, and Kinds the kinds of one.
	Services() []string
	Kinds(service string) []calltree.Kind
	// Windows are the windows of a tree, the latest first. A day stands before its hours.
	Windows(service string, kind calltree.Kind) []storedtree.Window
	// Paths is how many a window has about.
	Paths(service string, kind calltree.Kind, w storedtree.Window) int
	// Tree fails with the errors of package history.
	Tree(ctx context.Context, service string, kind calltree.Kind, w storedtree.Window) (calltree.Snapshot, error)
	// Notes are sentences about stored trees that cannot be shown, or stored.
	Notes() []string
}

var _ History = (*history.History)(nil)

// noHistory is the history without a storage.
type noHistory struct{}

func (noHistory) Services() []string                                 { return nil }
func (noHistory) Kinds(string) []calltree.Kind                       { return nil }
func (noHistory) Windows(string, calltree.Kind) []storedtree.Window  { return nil }
func (noHistory) Paths(string, calltree.Kind, storedtree.Window) int { return 0 }
func (noHistory) Notes() []string                                    { return nil }
func (noHistory) Tree(context.Context, string, calltree.Kind, storedtree.Window) (calltree.Snapshot, error) {
	return calltree.Snapshot{}, errNoStorage
}

var errNoStorage = fmt.Errorf("%w: the setting storage of the exporter is not set", history.ErrNotStored)

// historyRoutes adds the pages of stored windows.
func (h *Handler) historyRoutes(mux *http.ServeMux) {
	const at = "/at/{window}"
	h.treeRoutes(mux, "/services/{service}"+at, func(r *http.Request) tree {
		return h.storedAt(unsegment(r.PathValue("service")), calltree.Calls, r.PathValue("window"))
	})
	h.treeRoutes(mux, "/services/{service}/profiles/{type}/{unit}"+at, func(r *http.Request) tree {
		kind := calltree.Kind{Type: unsegment(r.PathValue("type")), Unit: unsegment(r.PathValue("unit"))}
		return h.storedAt(unsegment(r.PathValue("service")), kind, r.PathValue("window"))
	})
}

// storedAt returns the tree of a stored window, by the text of the window.
func (h *Handler) storedAt(service string, kind calltree.Kind, text string) tree {
	w, err := storedtree.ParseWindow(text)
	t := tree{service: service, kind: kind, at: w, paths: func() int { return 0 }}
	if err != nil {
		t.stored = func(context.Context) (calltree.Snapshot, error) { return calltree.Snapshot{}, badRequest{err} }
		return t
	}
	t.paths = func() int { return h.options.History.Paths(service, kind, w) }
	t.stored = func(ctx context.Context) (calltree.Snapshot, error) {
		s, err := h.options.History.Tree(ctx, service, kind, w)
		switch {
		case errors.Is(err, history.ErrNotStored):
			return s, notStored{err}
		case err != nil:
			return s, damaged{err}
		}
		return s, nil
	}
	return t
}

// notStored and damaged are errors of stored windows.
type (
	notStored struct{ error }
	damaged   struct{ error }
)

// storedWindow is a window as forms show it: 2026-11-27 10:00 to 11:00 UTC.
func storedWindow(w storedtree.Window) string {
	if w.Length == storedtree.Day {
		return w.From().Format(time.DateOnly) + " UTC"
	}
	return w.From().Format("2006-01-02 15:04") + " to " + w.To().Format("15:04 MST")
}

// storedDay is a day with its hours, for the list of a page.
type storedDay struct {
	Day   storedLink
	Hours []storedLink
}

type storedLink struct {
	Text, Address string // Address is relative to the page of all services
	IsShown       bool   // on this page
}

// storedDays returns the stored windows of a tree, the latest first. Hours of a day are in their order.
func (h *Handler) storedDays(of tree) (days []storedDay) {
	for _, w := range h.options.History.Windows(of.service, of.kind) {
		link := storedLink{Address: h.storedAt(of.service, of.kind, w.String()).address(), IsShown: w == of.at}
		if w.Length == storedtree.Day {
			link.Text = w.From().Format(time.DateOnly)
			days = append(days, storedDay{Day: link})
			continue
		}
		link.Text = w.From().Format("15:04")
		last := &days[len(days)-1]
		last.Hours = slices.Insert(last.Hours, 0, link)
	}
	return days
}

// earlierService is a service without a tree, and the address of its latest window.
type earlierService struct{ Name, Address string }

// earlierServices returns services that only stored windows have.
func (h *Handler) earlierServices(known []calltree.Service) (all []earlierService) {
	names := map[string]bool{}
	for i := range known {
		names[known[i].Name] = true
	}
	for _, name := range h.options.History.Services() {
		if names[name] {
			continue
		}
		for _, kind := range h.options.History.Kinds(name) {
			if windows := h.options.History.Windows(name, kind); len(windows) > 0 {
				all = append(all, earlierService{name, h.storedAt(name, kind, windows[0].String()).address()})
				break
			}
		}
	}
	return all
}
