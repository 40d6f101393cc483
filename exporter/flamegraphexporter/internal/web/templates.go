// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/call/treeformat"
	"github.com/callbraid/callbraid/internal/componentkit/figures"
	"github.com/callbraid/callbraid/internal/componentkit/webpage"
)

//go:embed pages
var files embed.FS

// pages are our own, by their file names.
var pages = webpage.Templates(template.FuncMap{
	"name":    shownName,
	"count":   figures.Count,
	"rate":    figures.Rate,
	"bytes":   func(n int64) string { return figures.Bytes(uint64(n)) },
	"segment": segment,
	"time":    shownTime,
	"length":  shownLength,
	"clock":   func(t time.Time) string { return t.Format(time.TimeOnly) },
	"isCalls": func(kind calltree.Kind) bool { return kind == calltree.Calls },
	"part":    part,
	"code":    breakable,
}, files, "pages/*.html")

// breakable is a name of a function in which lines break behind dots.
func breakable(name string) template.HTML {
	return template.HTML(strings.ReplaceAll(template.HTMLEscapeString(shownName(name)), ".", ".<wbr>"))
}

// part is a part of a whole in percent.
func part(of, whole uint64) string {
	if whole == 0 {
		return "–"
	}
	percent := 100 * float64(of) / float64(whole)
	if percent > 0 && percent < 0.1 {
		return "<0.1%"
	}
	return strconv.FormatFloat(percent, 'f', 1, 64) + "%"
}

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

func writeHTML(w http.ResponseWriter, r *http.Request, page *bytes.Buffer) {
	webpage.Write(w, r, http.StatusOK, page.Bytes())
}
