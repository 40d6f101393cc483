// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/call/treeformat"
	"github.com/callbraid/callbraid/internal/componentkit/figures"
)

//go:embed pages
var files embed.FS

// pages are our own, by their file names.
var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"name":    shownName,
	"count":   figures.Count,
	"rate":    figures.Rate,
	"bytes":   func(n int64) string { return figures.Bytes(uint64(n)) },
	"segment": segment,
	"time":    shownTime,
	"length":  shownLength,
	"isCalls": func(kind calltree.Kind) bool { return kind == calltree.Calls },
}).ParseFS(files, "pages/*.html"))

// longestName is how many characters of a name are shown.
const longestName = 200

// shownName is a name as pages show it.
func shownName(name string) string {
	shown := treeformat.Name(name)
	if utf8.RuneCountInString(shown) <= longestName {
		return shown
	}
	return string([]rune(shown)[:longestName]) + "…"
}

func shownTime(t time.Time) string { return t.Format("2006-01-02 15:04:05 MST") }

// shownLength formats a duration with about three digits.
func shownLength(d time.Duration) string {
	for _, unit := range []time.Duration{time.Hour, time.Minute, time.Second, time.Millisecond, time.Microsecond} {
		if d >= unit {
			return d.Round(unit / 100).String()
		}
	}
	return d.String()
}

// made is a page.
func made(page string, data any) (*bytes.Buffer, error) {
	var b bytes.Buffer
	err := pages.ExecuteTemplate(&b, page, data)
	return &b, err
}

func writeHTML(w http.ResponseWriter, page *bytes.Buffer) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(page.Bytes()) // the client has gone, or reads too slowly
}

// serveStyle serves the style sheet of our own pages.
func serveStyle(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	http.ServeFileFS(w, r, files, "pages/style.css")
}
