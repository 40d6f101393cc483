// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontrolextension

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/agentcontrol/api"
	"github.com/callbraid/callbraid/internal/componentkit/figures"
)

//go:embed pages
var files embed.FS

// pages are by their file names.
var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"count": func(n int64) string { return figures.Count(uint64(max(n, 0))) },
	"time":  shownTime,
	"ago":   shownAgo,
}).ParseFS(files, "pages/*.html"))

func shownTime(t *time.Time) string {
	if t == nil {
		return "–"
	}
	return t.Local().Format("2006-01-02 15:04:05 MST")
}

func shownAgo(t *time.Time) string {
	if t == nil {
		return "–"
	}
	return time.Since(*t).Round(time.Second).String() + " ago"
}

// agentsOnPage is how many agents a page has.
const agentsOnPage = 200

// overview is the page of all agents.
type overview struct {
	Title, Root string
	Agents      []pageAgent
	// First is the number of the first on the page, of All; Before and After are the
	// numbers of other pages, 0: there is none.
	First, Last, All, Before, After int
	// Collector is on the first page only.
	Collector *wholePage
}

// pageAgent is an agent on a page.
type pageAgent struct {
	api.AgentDetail
	// Buttons are the commands that need no argument and are allowed.
	Buttons []string
}

// agentsPage lists the agents.
func (s *site) agentsPage(w http.ResponseWriter, r *http.Request) {
	all := s.sorted()
	last := max(1, (len(all)+agentsOnPage-1)/agentsOnPage)
	number := 1
	if text := r.URL.Query().Get("page"); text != "" {
		var err error
		if number, err = strconv.Atoi(text); err != nil || number < 1 || number > last {
			s.failedPage(w, "", problemOf(notFound, 0, fmt.Sprintf("there is no page %.20q of agents", text)))
			return
		}
	}
	from := (number - 1) * agentsOnPage
	to := min(from+agentsOnPage, len(all))
	o := overview{Title: "Agents", First: from + 1, Last: to, All: len(all), Before: number - 1}
	if to < len(all) {
		o.After = number + 1
	}
	if number == 1 {
		whole := s.page(r.Context(), hostOf(r))
		o.Collector = &whole
	}
	for _, e := range all[from:to] {
		now := e.show()
		o.Agents = append(o.Agents, s.onPage(&now, maxListed))
	}
	s.render(w, http.StatusOK, "agents.html", o)
}

// hostOf is the name by which a client calls the server.
func hostOf(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.Host); err == nil {
		return host
	}
	return r.Host
}

func (s *site) onPage(now *shown, most int) pageAgent {
	a := pageAgent{AgentDetail: detailOf(now, most)}
	for _, c := range a.Descriptions {
		needs := false
		for _, p := range c.Parameters {
			needs = needs || p.Required
		}
		if !needs && (!c.Disruptive || s.config.AllowDisruptive) {
			a.Buttons = append(a.Buttons, c.Name)
		}
	}
	return a
}

// agentPage shows an agent, with a form for each of its commands.
func (s *site) agentPage(w http.ResponseWriter, r *http.Request) {
	e, missing := s.named(r)
	if e == nil {
		s.failedPage(w, "../", missing)
		return
	}
	now := e.show()
	s.render(w, http.StatusOK, "agent.html", struct {
		Title, Root     string
		Agent           pageAgent
		AllowDisruptive bool
	}{"Agent " + now.ID, "../", s.onPage(&now, maxText), s.config.AllowDisruptive})
}

// orderByForm carries out the order of a form, and shows the result.
func (s *site) orderByForm(w http.ResponseWriter, r *http.Request) {
	const root = "../../"
	e, missing := s.named(r)
	if e == nil {
		s.failedPage(w, root, missing)
		return
	}
	wanted, status, err := readForm(r)
	if err != nil {
		s.failedPage(w, root, problemOf(badRequest, status, err.Error()))
		return
	}
	said, took, err := s.carryOut(r.Context(), e, wanted)
	if err != nil {
		p := problemOf(agentcontrol.ReasonOf(err), 0, err.Error())
		s.answerForm(w, p.Status, "problem.html", problemPage{p.Title, root, p})
		return
	}
	s.answerForm(w, http.StatusOK, "answer.html", struct {
		Title, Root string
		Answer      api.Answer
	}{"Done: " + wanted.command, root, answerOf(e, wanted.command, said, took, s.config.Limits.MaxItems)})
}

// argumentPrefix is the prefix of form fields with arguments.
const argumentPrefix = "argument."

// readForm reads an order from a form.
func readForm(r *http.Request) (w wish, status int, err error) {
	const formType = "application/x-www-form-urlencoded"
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != formType {
		return wish{}, http.StatusUnsupportedMediaType, fmt.Errorf("expected the content type %s, got %.100q", formType, r.Header.Get("Content-Type"))
	}
	if err := r.ParseForm(); err != nil {
		return wish{}, statusOf(err), err
	}
	w = wish{command: r.PostForm.Get("command"), arguments: map[string]string{}, by: clientOf(r)}
	for name, values := range r.PostForm {
		if argument, ok := strings.CutPrefix(name, argumentPrefix); ok {
			w.arguments[argument] = values[0]
		}
	}
	return w, 0, nil
}

// failedPage shows a problem.
func (s *site) failedPage(w http.ResponseWriter, root string, p api.Problem) {
	setRetryAfter(w, p)
	s.render(w, p.Status, "problem.html", problemPage{p.Title, root, p})
}

// problemPage is the page of a problem.
type problemPage struct {
	Title, Root string
	Problem     api.Problem
}

// render answers with a page.
func (s *site) render(w http.ResponseWriter, status int, name string, data any) {
	html, err := renderPage(name, data)
	if err != nil {
		s.failedRender(w, err)
		return
	}
	page{status, html}.write(w)
}

func renderPage(name string, data any) ([]byte, error) {
	var b bytes.Buffer
	err := pages.ExecuteTemplate(&b, name, data)
	return b.Bytes(), err
}

func serveStyle(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	http.ServeFileFS(w, r, files, "pages/style.css")
}
