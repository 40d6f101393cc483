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
	Logger                             *zap.Logger
}

// Handler serves trees.
type Handler struct {
	trees   Trees
	options Options
	windows windows
	// droppedWindows is how many windows were kept and made room for others.
	droppedWindows atomic.Int64
	pages          turns
	downloads      turns
	serve          http.Handler
}

// New is a handler of all pages.
func New(trees Trees, options Options) *Handler {
	h := &Handler{trees: trees, options: options, pages: make(turns, mostPages), downloads: make(turns, mostDownloads)}
	h.serve = guarded(&h.options, h.routes())
	return h
}

// DroppedWindows is how many windows were kept and made room for others.
func (h *Handler) DroppedWindows() int64 { return h.droppedWindows.Load() }

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
