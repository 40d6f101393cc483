// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/callbraid/callbraid/exporter/flamegraphexporter/internal/history"
	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/call/storedtree"
)

// tree is the tree of an address.
type tree struct {
	service string
	kind    calltree.Kind
	// window is the number of a collected window, or 0 for the live tree.
	window uint64
	// stored returns the tree of a stored window, at; nil: it is none.
	stored func(context.Context) (calltree.Snapshot, error)
	at     storedtree.Window
	// paths is how many it has about.
	paths func() int
	// snapshot returns the tree; false: it does not exist, or no longer.
	snapshot func() (calltree.Snapshot, bool)
}

// address returns the address of the tree's page, relative to the page of all services.
// [Handler.treeAt] reads it.
func (t tree) address() string {
	if t.window != 0 {
		return fmt.Sprintf("windows/%d/", t.window)
	}
	address := "services/" + segment(t.service) + "/"
	if t.kind != calltree.Calls {
		address += "profiles/" + segment(t.kind.Type) + "/" + segment(t.kind.Unit) + "/"
	}
	if t.stored != nil {
		address += "at/" + t.at.String() + "/"
	}
	return address
}

// isWindow reports whether it is no live tree.
func (t tree) isWindow() bool { return t.window != 0 || t.stored != nil }

// finder finds the tree that a request is about.
type finder func(*http.Request) tree

func (h *Handler) ofService(r *http.Request) tree {
	return h.live(unsegment(r.PathValue("service")), calltree.Calls)
}

func (h *Handler) ofProfile(r *http.Request) tree {
	kind := calltree.Kind{Type: unsegment(r.PathValue("type")), Unit: unsegment(r.PathValue("unit"))}
	return h.live(unsegment(r.PathValue("service")), kind)
}

func (h *Handler) live(service string, kind calltree.Kind) tree {
	return tree{service: service, kind: kind, paths: func() int { return h.trees.Paths(service, kind) }, snapshot: func() (calltree.Snapshot, bool) {
		return h.trees.Snapshot(service, kind)
	}}
}

func (h *Handler) ofWindow(r *http.Request) tree {
	number, err := strconv.ParseUint(r.PathValue("window"), 10, 64)
	if err != nil {
		number = 0 // there is none of that number
	}
	return h.window(number)
}

func (h *Handler) window(number uint64) tree {
	s, ok := h.windows.find(number)
	return tree{service: s.Service, kind: s.Kind, window: number, paths: func() int { return len(s.Nodes) }, snapshot: func() (calltree.Snapshot, bool) {
		return s, ok
	}}
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

// withTree serves the tree of an address in its turn.
func (h *Handler) withTree(find finder, serve func(http.ResponseWriter, *http.Request, tree) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h.answerError(w, r, serve(w, r, find(r)))
	}
}

// inTurn returns the tree's snapshot when its turn has come, or an error for the client.
func (t tree) inTurn(ctx context.Context, turn *turn) (calltree.Snapshot, error) {
	if err := turn.wait(ctx); err != nil {
		return calltree.Snapshot{}, err
	}
	if err := turn.hold(ofPaths(t.paths())); err != nil {
		return calltree.Snapshot{}, err
	}
	return t.now(ctx)
}

// now returns the tree's snapshot, or an error for the client.
func (t tree) now(ctx context.Context) (calltree.Snapshot, error) {
	if t.stored != nil {
		return t.stored(ctx)
	}
	s, ok := t.snapshot()
	switch {
	case ok:
		return s, nil
	case t.window != 0:
		return s, errGone
	default:
		return s, calltree.ErrNotThere
	}
}
