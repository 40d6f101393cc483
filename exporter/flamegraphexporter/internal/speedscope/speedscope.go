// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package speedscope serves speedscope, a viewer of profiles that runs in the browser, from the binary. The folder
// release has the files of its release, and licences.txt its licence and those of the libraries in it. fetch.sh fetches
// them and checks them against SHA256SUMS. They are in the repository because a collector is also built from the Go
// module alone.
//
// The package knows the release and its needs of the browser. It knows no profiles.
package speedscope

import (
	"embed"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

//go:embed release
var files embed.FS

// release is the folder of the files.
const release = "release"

// policy allows scripts and styles of this server only, and profiles of this server. The hash is that of an empty text:
// the viewer makes an empty style element, and adds its rules by script. Policies do not restrict such rules. Its script
// also has WebAssembly, for names of C++ functions. That is no permission to make JavaScript of a text.
const policy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self' 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='; " +
	"img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"

// Handler serves the page of speedscope and its files. Requests have paths below prefix, such as "/speedscope/". The
// fragment of the page's address names the profile to show (profileURL), its title, and the view.
func Handler(prefix string) http.Handler {
	folder, err := fs.Sub(files, release)
	if err != nil {
		panic(err) // the name is valid
	}
	server := http.FileServerFS(folder)
	return http.StripPrefix(prefix, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		if strings.Contains(r.URL.Path, "-") { // the name has a hash of the content
			w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
		}
		if path.Ext(r.URL.Path) == ".woff2" { // Go does not know the type everywhere
			w.Header().Set("Content-Type", "font/woff2")
		}
		server.ServeHTTP(w, r)
	}))
}
