// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package d3flamegraph serves d3-flame-graph, a library that draws flame graphs in the browser, from the binary. The
// folder release has its script, and that of d3-selection, which passes it the element to draw in. licences.txt has their
// licences and those of the libraries in them. fetch.sh fetches them and checks them against SHA256SUMS. They are in the
// repository because a collector is also built from the Go module alone.
//
// The package knows the release. It knows no call trees and no pages.
package d3flamegraph

import (
	"embed"
	"io/fs"
	"net/http"
	"path"
)

//go:embed release
var files embed.FS

// release is the folder of the files.
const release = "release"

// The scripts, in the order in which a page loads them. Their names have their versions.
const (
	Selection  = "d3-selection-3.0.0.min.js"
	FlameGraph = "d3-flamegraph-4.1.3.min.js"
)

// Handler serves the scripts. Requests have paths below prefix, such as "/d3/".
func Handler(prefix string) http.Handler {
	folder, err := fs.Sub(files, release)
	if err != nil {
		panic(err) // the name is valid
	}
	server := http.FileServerFS(folder)
	return http.StripPrefix(prefix, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path.Ext(r.URL.Path) != ".js" { // no list of the files
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
		w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
		server.ServeHTTP(w, r)
	}))
}
