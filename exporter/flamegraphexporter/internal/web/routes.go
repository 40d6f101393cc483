// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"

	"github.com/callbraid/callbraid/exporter/flamegraphexporter/internal/d3flamegraph"
	"github.com/callbraid/callbraid/exporter/flamegraphexporter/internal/speedscope"
	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/componentkit/webpage"
)

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

// speedscopePath is where the viewer is.
const speedscopePath = "/speedscope/"
