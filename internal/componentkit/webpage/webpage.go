// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package webpage

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"io/fs"
	"net/http"

	"github.com/callbraid/callbraid/internal/componentkit/sameorigin"
)

//go:embed frame.html style.css live.js
var files embed.FS

// Templates are the templates of a component's files by their names, with the templates of the frame: "head" and "foot", which
// need the fields Title and Root, and "live", which needs Root. Root is the relative address of [Routes].
func Templates(functions template.FuncMap, of fs.FS, patterns ...string) *template.Template {
	all := template.Must(template.New("").Funcs(functions).ParseFS(files, "frame.html"))
	return template.Must(all.ParseFS(of, patterns...))
}

// Routes are the addresses of the files that pages load.
var Routes = map[string]http.HandlerFunc{
	"/style.css": File(files, "style.css", "text/css; charset=utf-8"),
	"/live.js":   File(files, "live.js", "text/javascript; charset=utf-8"),
}

// File serves a file that a page loads.
func File(of fs.FS, name, contentType string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		http.ServeFileFS(w, r, of, name)
	}
}

// Write answers with a page. If the request has the tag of the same page, the response is status 304 without content.
func Write(w http.ResponseWriter, r *http.Request, status int, html []byte) {
	sum := sha256.Sum256(html)
	tag := `"` + hex.EncodeToString(sum[:12]) + `"`
	sameorigin.AllowOwnScripts(w.Header())
	w.Header().Set("ETag", tag)
	if status == http.StatusOK && r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(html) // the client has gone, or reads too slowly
}
