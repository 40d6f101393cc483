// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// Options are what the handler is told of its surroundings.
type Options struct {
	// WriteTimeout is how long the server lets a response take; 0: as long as it wants.
	WriteTimeout time.Duration
	// Address is where the server listens, and AllowedHosts what it may be called there
	// beside localhost and its addresses: see [sameorigin.Guard].
	Address      net.Addr
	AllowedHosts []string
	// MaxKeptWindows is how many windows are kept for the pages, and MaxKeptWindowNodes how
	// many paths all of them have. Both are above 0.
	MaxKeptWindows, MaxKeptWindowNodes int
	// Take takes memory for a response, in bytes, or fails where there is none; nil: there
	// always is. leave is called in another goroutine where the response has to end. release
	// gives the memory back.
	Take func(bytes int64, leave func()) (release func(), err error)
	// Kept is called when a window was kept; nil: nothing is.
	Kept   func()
	Logger *zap.Logger
}

// Handler serves trees.
type Handler struct {
	trees   Trees
	options Options
	windows windows
	// droppedWindows is how many windows were kept and made room for others.
	droppedWindows atomic.Int64
	// shedWindows are those of them that went because memory was short, and refusedPages are
	// responses for which there was none.
	shedWindows, refusedPages atomic.Int64
	starts, pages, downloads  turns
	// sent is what pages take that are being sent, in bytes.
	sent  atomic.Int64
	serve http.Handler
}

// New is a handler of all pages.
func New(trees Trees, options Options) *Handler {
	h := &Handler{trees: trees, options: options, starts: make(turns, mostPages), pages: make(turns, mostPages), downloads: make(turns, mostDownloads)}
	h.serve = guarded(&h.options, h.routes())
	return h
}

// DroppedWindows is how many windows were kept and made room for others.
func (h *Handler) DroppedWindows() int64 { return h.droppedWindows.Load() }

// ShedWindows is how many of them did because memory was short.
func (h *Handler) ShedWindows() int64 { return h.shedWindows.Load() }

// RefusedPages is how many pages and downloads were refused because memory was short.
func (h *Handler) RefusedPages() int64 { return h.refusedPages.Load() }

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.serve.ServeHTTP(w, r) }

func (h *Handler) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", h.overview)
	mux.HandleFunc("GET /style.css", serveStyle)
	mux.HandleFunc("GET /traces/{file}", h.trace)
	mux.HandleFunc("POST /windows", h.collectWindow)
	mux.HandleFunc("POST /reset", h.reset)
	h.treeRoutes(mux, "/services/{service}", h.ofService)
	h.treeRoutes(mux, "/services/{service}/profiles/{type}/{unit}", h.ofProfile)
	h.treeRoutes(mux, "/windows/{window}", h.ofWindow)
	return mux
}

// treeRoutes adds what there is of each tree.
func (h *Handler) treeRoutes(mux *http.ServeMux, base string, find finder) {
	mux.HandleFunc("GET "+base+"/{$}", h.withTree(find, h.treePage))
	mux.HandleFunc("GET "+base+"/ui/{$}", redirect(".."))
	mux.HandleFunc("GET "+base+"/ui/download", redirect("../"+pprofFile))
	mux.HandleFunc("GET "+base+"/ui/{page}", h.withTree(find, h.pprofPage))
	for name := range formats {
		mux.HandleFunc("GET "+base+"/"+name, h.withTree(find, h.download(name)))
	}
}

// redirect leads to an address that is relative to the request's: who stands between may
// have put something before all paths.
func redirect(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusSeeOther)
	}
}
