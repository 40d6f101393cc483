// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontrolextension

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/agentcontrol/api"
	"github.com/callbraid/callbraid/internal/componentkit/figures"
	"github.com/callbraid/callbraid/internal/componentkit/webpage"
)

//go:embed pages
var files embed.FS

// pages are by their file names.
var pages = webpage.Templates(template.FuncMap{
	"count": func(n int64) string { return figures.Count(uint64(max(n, 0))) },
	"time":  shownTime,
	"seen":  func(t *time.Time) string { return shownSeen(t, time.Now()) },
}, files, "pages/*.html")

func shownTime(t *time.Time) string {
	if t == nil {
		return "–"
	}
	return t.Local().Format("2006-01-02 15:04:05 MST")
}

// recently is the time for which a page shows a moment as now. Otherwise the page of an idle agent would change with each of
// its heartbeats.
const recently = 15 * time.Second

// shownSeen is the time of an agent's latest message.
func shownSeen(t *time.Time, now time.Time) string {
	switch {
	case t == nil:
		return "–"
	case now.Sub(*t) < recently:
		return "now"
	case now.Sub(*t) < 12*time.Hour:
		return t.Local().Format(time.TimeOnly)
	}
	return shownTime(t)
}

// problemPage is the page of a problem.
type problemPage struct {
	Title, Root string
	Problem     api.Problem
}

// failedPage shows a problem.
func (s *site) failedPage(w http.ResponseWriter, r *http.Request, root string, p api.Problem) {
	setRetryAfter(w, p)
	s.render(w, r, p.Status, "problem.html", problemPage{p.Title, root, p})
}

// render answers with a page.
func (s *site) render(w http.ResponseWriter, r *http.Request, status int, name string, data any) {
	html, err := renderPage(name, data)
	if err != nil {
		s.failedRender(w, err)
		return
	}
	page{status, html}.write(w, r)
}

func (s *site) failedRender(w http.ResponseWriter, err error) {
	s.logger.Error("A page could not be made", zap.Error(err))
	http.Error(w, "the page could not be made", http.StatusInternalServerError)
}

func renderPage(name string, data any) ([]byte, error) {
	var b bytes.Buffer
	err := pages.ExecuteTemplate(&b, name, data)
	return b.Bytes(), err
}
