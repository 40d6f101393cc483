// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontrolextension

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"html/template"
	"mime"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/callbraid/callbraid/internal/agentcontrol"
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

// agentsOnPage is how many agents a page has.
const agentsOnPage = 200

// overview is the page of all agents.
type overview struct {
	Title, Root string
	Agents      []pageAgent
	// First is the number of the first on the page, of All; Before and After are the
	// numbers of other pages, 0: there is none.
	First, Last, All, Before, After int
	// Tracers have the commands of the agents on the page.
	Tracers []tracerCommands
	// Collector is on the first page only.
	Collector *wholePage
}

// pageAgent is an agent on a page.
type pageAgent struct {
	api.AgentDetail
	// Tone is the style of its state: a word of style.css, or empty.
	Tone string
	// Shown are all commands. Buttons are those that fit the agent's state, are allowed, and need no argument, and Forms those
	// that need one.
	Shown, Buttons, Forms []pageCommand
}

// pageCommand is a command on a page.
type pageCommand struct {
	api.Command
	// Allowed: the settings allow it.
	Allowed bool
	// Unfit is the reason why it does not fit the agent's state; empty: it fits.
	Unfit string
}

// tracerCommands are the commands of all agents of a tracer on a page.
type tracerCommands struct {
	Tracer       string
	Descriptions []pageCommand
}

// agentsPage lists the agents.
func (s *site) agentsPage(w http.ResponseWriter, r *http.Request) {
	all := s.sorted()
	last := max(1, (len(all)+agentsOnPage-1)/agentsOnPage)
	number := 1
	if text := r.URL.Query().Get("page"); text != "" {
		var err error
		if number, err = strconv.Atoi(text); err != nil || number < 1 || number > last {
			s.failedPage(w, r, "", problemOf(notFound, 0, fmt.Sprintf("there is no page %.20q of agents", text)))
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
		a := s.onPage(&now, maxListed)
		o.Agents = append(o.Agents, a)
		o.describe(&a)
	}
	s.render(w, r, http.StatusOK, "agents.html", o)
}

// describe adds the commands of an agent to those of its tracer. Agents are sorted by tracer. Agents of one tracer may have
// different commands: those of a server without a pipeline, or that only sends, are fewer.
func (o *overview) describe(a *pageAgent) {
	if len(a.Shown) == 0 {
		return
	}
	if n := len(o.Tracers); n == 0 || o.Tracers[n-1].Tracer != a.Tracer {
		o.Tracers = append(o.Tracers, tracerCommands{Tracer: a.Tracer})
	}
	of := &o.Tracers[len(o.Tracers)-1]
	for _, c := range a.Shown {
		if !slices.ContainsFunc(of.Descriptions, func(known pageCommand) bool { return known.Name == c.Name }) {
			of.Descriptions = append(of.Descriptions, c)
		}
	}
}

// hostOf is the name by which a client calls the server.
func hostOf(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.Host); err == nil {
		return host
	}
	return r.Host
}

func (s *site) onPage(now *shown, most int) pageAgent {
	a := pageAgent{AgentDetail: detailOf(now, most), Tone: toneOf(now.State)}
	for _, c := range a.Descriptions {
		shown := pageCommand{Command: c, Allowed: !c.Disruptive || s.config.AllowDisruptive, Unfit: a.Unfit[c.Name]}
		a.Shown = append(a.Shown, shown)
		switch {
		case !shown.Allowed, shown.Unfit != "":
		case slices.ContainsFunc(c.Parameters, func(p api.Parameter) bool { return p.Required }):
			a.Forms = append(a.Forms, shown)
		default:
			a.Buttons = append(a.Buttons, shown)
		}
	}
	return a
}

// toneOf is the style of a state, by the first word of the state.
func toneOf(state string) string {
	switch word, _, _ := strings.Cut(strings.ReplaceAll(state, ",", ""), " "); word {
	case "tracing", "connected", "registered":
		return "well"
	case "paused", "suspended", "disconnected", "unreached", "given_up":
		return "resting"
	}
	return ""
}

// agentPage shows an agent, with a form for each of its commands.
func (s *site) agentPage(w http.ResponseWriter, r *http.Request) {
	e, missing := s.named(r)
	if e == nil {
		s.failedPage(w, r, "../", missing)
		return
	}
	now := e.show()
	a := s.onPage(&now, maxText)
	s.render(w, r, http.StatusOK, "agent.html", struct {
		Title, Root     string
		Agent           pageAgent
		AllowDisruptive bool
	}{"Agent " + cmp.Or(a.Service, now.ID), "../", a, s.config.AllowDisruptive})
}

// orderByForm carries out the order of a form, and shows the result.
func (s *site) orderByForm(w http.ResponseWriter, r *http.Request) {
	const root = "../../"
	e, missing := s.named(r)
	if e == nil {
		s.failedPage(w, r, root, missing)
		return
	}
	wanted, status, err := readForm(r)
	if err != nil {
		s.failedPage(w, r, root, problemOf(badRequest, status, err.Error()))
		return
	}
	said, took, err := s.carryOut(r.Context(), e, wanted)
	if err != nil {
		p := problemOf(agentcontrol.ReasonOf(err), 0, err.Error())
		s.answerForm(w, r, p.Status, "problem.html", problemPage{p.Title, root, p})
		return
	}
	s.answerForm(w, r, http.StatusOK, "answer.html", struct {
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
func (s *site) failedPage(w http.ResponseWriter, r *http.Request, root string, p api.Problem) {
	setRetryAfter(w, p)
	s.render(w, r, p.Status, "problem.html", problemPage{p.Title, root, p})
}

// problemPage is the page of a problem.
type problemPage struct {
	Title, Root string
	Problem     api.Problem
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

func renderPage(name string, data any) ([]byte, error) {
	var b bytes.Buffer
	err := pages.ExecuteTemplate(&b, name, data)
	return b.Bytes(), err
}
