// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/exporter/flamegraphexporter/internal/d3flamegraph"
	"github.com/callbraid/callbraid/exporter/flamegraphexporter/internal/speedscope"
	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/componentkit/webpage"
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

// New is a handler of all pages.
func New(trees Trees, options Options) *Handler {
	h := &Handler{
		trees: trees, options: options, starts: make(turns, mostPages), pages: make(turns, mostPages), downloads: make(turns, mostDownloads),
		fileDownloads: make(turns, mostTraceFileDownloads),
	}
	if h.options.History == nil {
		h.options.History = noHistory{}
	}
	h.serve = guarded(&h.options, h.routes())
	return h
}

// DroppedWindows is the number of kept windows that made room for others.
func (h *Handler) DroppedWindows() int64 { return h.droppedWindows.Load() }

// ShedWindows is how many of them did because memory was short.
func (h *Handler) ShedWindows() int64 { return h.shedWindows.Load() }

// RefusedPages is how many pages and downloads were refused because memory was short.
func (h *Handler) RefusedPages() int64 { return h.refusedPages.Load() }

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.serve.ServeHTTP(w, r) }

func (h *Handler) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", h.overview)
	for path, file := range webpage.Routes {
		mux.HandleFunc("GET "+path, file)
	}
	mux.HandleFunc("GET /"+flameStyle, webpage.File(files, "pages/"+flameStyle, "text/css; charset=utf-8"))
	mux.HandleFunc("GET /"+flameScript, webpage.File(files, "pages/"+flameScript, "text/javascript; charset=utf-8"))
	mux.Handle("GET /"+flameScripts, d3flamegraph.Handler("/"+flameScripts))
	mux.HandleFunc("GET /traces/{file}", h.trace)
	mux.HandleFunc("GET /files/{file}", h.traceFile)
	mux.Handle("GET "+speedscopePath, speedscope.Handler(speedscopePath))
	mux.HandleFunc("GET /compare", h.compare)
	mux.HandleFunc("POST /windows", h.collectWindow)
	mux.HandleFunc("POST /reset", h.reset)
	h.treeRoutes(mux, "/services/{service}", h.ofService)
	h.treeRoutes(mux, "/services/{service}/profiles/{type}/{unit}", h.ofProfile)
	h.treeRoutes(mux, "/windows/{window}", h.ofWindow)
	h.historyRoutes(mux)
	return mux
}

// treeRoutes adds the pages of each tree.
func (h *Handler) treeRoutes(mux *http.ServeMux, base string, find finder) {
	mux.HandleFunc("GET "+base+"/{$}", h.withTree(find, h.treePage))
	mux.HandleFunc("POST "+base+"/now", h.withTree(find, h.measureNow))
	mux.HandleFunc("GET "+base+"/ui/{$}", redirect(".."))
	mux.HandleFunc("GET "+base+"/ui/download", redirect("../"+pprofFile))
	mux.HandleFunc("GET "+base+"/ui/flamegraph", h.withTree(find, h.flameGraphPage))
	mux.HandleFunc("GET "+base+"/ui/flamegraph.json", h.withTree(find, h.flameGraphData))
	mux.HandleFunc("GET "+base+"/ui/{page}", h.withTree(find, h.pprofPage))
	for name := range formats {
		mux.HandleFunc("GET "+base+"/"+name, h.withTree(find, h.download(name)))
	}
}

// speedscopePath is where the viewer is.
const speedscopePath = "/speedscope/"

// redirect redirects to an address relative to the request's, because a proxy may add a prefix to
// all paths.
func redirect(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusSeeOther)
	}
}
