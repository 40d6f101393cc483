// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontrolextension

import (
	"cmp"
	"fmt"
	"mime"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/agentcontrol/api"
)

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

// answerForm answers a form with a page that is to be looked at elsewhere: from the form's
// address and from its own, everything else is two steps up.
func (s *site) answerForm(w http.ResponseWriter, r *http.Request, status int, name string, data any) {
	html, err := renderPage(name, data)
	if err != nil {
		s.failedRender(w, err)
		return
	}
	p := page{status, html}
	if key := s.kept.keep(p); key != "" {
		w.Header().Set("Location", "../../answers/to/"+key)
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	p.write(w, r)
}

// answerPage answers with a kept page.
func (s *site) answerPage(w http.ResponseWriter, r *http.Request) {
	if p, ok := s.kept.find(r.PathValue("key")); ok {
		p.write(w, r)
		return
	}
	s.failedPage(w, r, "../../", problemOf(notFound, 0, "this answer is no longer kept"))
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
