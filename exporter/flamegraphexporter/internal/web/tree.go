// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/call/storedtree"
	"github.com/callbraid/callbraid/internal/call/treeformat"
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

// withTree serves the tree of an address in its turn.
func (h *Handler) withTree(find finder, serve func(http.ResponseWriter, *http.Request, tree) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h.answerError(w, r, serve(w, r, find(r)))
	}
}

// Errors of requests, beside those of package calltree.
var (
	errTooMany     = errors.New("too many requests at the same time: try again later")
	errGone        = errors.New("the window is no longer kept: collect another one")
	errOtherSite   = errors.New("a script, or a page of another site, sent this request: expected a followed link of this server, or a program")
	errNoTrace     = errors.New("no span of that trace is kept")
	errNoTraceFile = errors.New("there is no such trace file, or no longer")
	errMemory      = errors.New("the memory budget of the collector has no room for this page: try again later, or raise limit_mib of the extension memory_budget")
)

// badRequest is an error of the client.
type badRequest struct{ error }

func badRequestf(format string, values ...any) error {
	return badRequest{fmt.Errorf(format, values...)}
}

// answerError answers with an error, if there is one.
func (h *Handler) answerError(w http.ResponseWriter, r *http.Request, err error) {
	var bad badRequest
	if errors.As(err, new(noMemory)) {
		h.refusedPages.Add(1)
		err = errMemory
	}
	switch {
	case err == nil:
	case r.Context().Err() != nil: // the client is gone, or the collector ends
		http.Error(w, "the request was ended before its answer was ready", http.StatusServiceUnavailable)
	case errors.Is(err, errOtherSite):
		answerText(w, err.Error(), http.StatusForbidden)
	case errors.As(err, &bad):
		answerText(w, err.Error(), http.StatusBadRequest)
	case errors.As(err, new(damaged)): // the log has it, too
		answerText(w, err.Error(), http.StatusInternalServerError)
	case errors.Is(err, calltree.ErrNotThere), errors.Is(err, errGone), errors.Is(err, errNoTrace), errors.Is(err, errNoTraceFile), errors.As(err, new(notStored)),
		errors.Is(err, treeformat.ErrNoFrame):
		answerText(w, err.Error(), http.StatusNotFound)
	case errors.Is(err, calltree.ErrBusy), errors.Is(err, errTooMany), errors.Is(err, errMemory):
		w.Header().Set("Retry-After", "5")
		answerText(w, err.Error(), http.StatusServiceUnavailable)
	default:
		h.options.Logger.Error("a page could not be made", zap.String("path", r.URL.EscapedPath()), zap.Error(err))
		http.Error(w, "the page could not be made: the collector's log has the reason", http.StatusInternalServerError)
	}
}

// answerText answers with a text that can have something of the query in it.
func answerText(w http.ResponseWriter, text string, status int) {
	http.Error(w, treeformat.Printable(text), status)
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
