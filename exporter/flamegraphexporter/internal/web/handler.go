// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/call/treeformat"
	"github.com/callbraid/callbraid/internal/componentkit/logline"
)

// Options are the handler's settings and surroundings.
type Options struct {
	// WriteTimeout bounds the time of a response; 0: unbounded.
	WriteTimeout time.Duration
	// Address is the server's address, and AllowedHosts its allowed names beside localhost and its
	// addresses: see [sameorigin.Guard].
	Address      net.Addr
	AllowedHosts []string
	// MaxKeptWindows is the number of windows that are kept for the pages, and MaxKeptWindowNodes
	// the number of their paths together. Both are above 0.
	MaxKeptWindows, MaxKeptWindowNodes int
	// TraceFiles is the path of the trace files that the pages offer; empty: none.
	TraceFiles string
	// Reserve reserves memory for a response, in bytes, or fails if there is none; nil: there always
	// is. It calls leave in another goroutine if the response must end. release frees the memory.
	Reserve func(bytes int64, leave func()) (release func(), err error)
	// Kept is called after a window was kept; nil: no call.
	Kept func()
	// History has the stored windows; nil: there are none.
	History History
	Logger  *zap.Logger
}

// Handler serves trees.
type Handler struct {
	trees   Trees
	options Options
	windows windows
	// droppedWindows is the number of kept windows that made room for others.
	droppedWindows atomic.Int64
	// shedWindows is the number of them that made room because memory was short. refusedPages is the
	// number of responses without memory.
	shedWindows, refusedPages atomic.Int64
	starts, pages, downloads  turns
	fileDownloads             turns
	// unlisted are lists of trace files that could not be made.
	unlisted logline.Seldom
	// sent is the memory of pages that are being sent, in bytes.
	sent  atomic.Int64
	serve http.Handler
}

// DroppedWindows is the number of kept windows that made room for others.
func (h *Handler) DroppedWindows() int64 { return h.droppedWindows.Load() }

// ShedWindows is how many of them did because memory was short.
func (h *Handler) ShedWindows() int64 { return h.shedWindows.Load() }

// RefusedPages is how many pages and downloads were refused because memory was short.
func (h *Handler) RefusedPages() int64 { return h.refusedPages.Load() }

// KeptBytes is about the memory of the kept windows.
func (h *Handler) KeptBytes() int64 { return h.windows.bytes() }

// ShedBytes drops kept windows, the oldest first, until so many bytes are free or none is left.
func (h *Handler) ShedBytes(bytes int64) {
	dropped := h.windows.shed(bytes)
	h.droppedWindows.Add(int64(dropped))
	h.shedWindows.Add(int64(dropped))
}

func (h *Handler) turn(of turns) turn {
	return turn{of: of, memory: h.options.Reserve, isOver: new(atomic.Bool)}
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

// redirect redirects to an address relative to the request's, because a proxy may add a prefix to
// all paths.
func redirect(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusSeeOther)
	}
}
