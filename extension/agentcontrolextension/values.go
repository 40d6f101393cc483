// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontrolextension

import (
	"strings"
	"time"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/agentcontrol/api"
)

// How much of a text of an agent's is shown, in bytes: of one agent's, and in lists.
const (
	maxText   = 1024
	maxListed = 256
)

// clip is a text in UTF-8 of at most so many bytes.
func clip(text string, most int) string {
	if len(text) > most {
		text = text[:most]
	}
	return strings.ToValidUTF8(text, "")
}

// agentOf returns the description of an agent in the list. most bounds each text.
func agentOf(s *shown, most int) api.Agent {
	a := api.Agent{
		ID: s.ID, Tracer: s.Tracer, Receiver: s.Receiver,
		Service: clip(s.Service, most), Address: clip(s.Address, most), State: clip(s.State, most),
		Since: timeOf(s.Since), LastSeen: timeOf(s.LastSeen),
		Commands: make([]string, len(s.Commands)), Unfit: s.Unfit, Counters: make([]api.Counter, len(s.Counters)),
	}
	if s.Process != (agentcontrol.Process{}) {
		a.Process = &api.Process{PID: s.Process.PID, Name: clip(s.Process.Name, most)}
	}
	for i := range s.Commands {
		a.Commands[i] = s.Commands[i].Name
	}
	for i, c := range s.Counters {
		a.Counters[i] = api.Counter(c)
	}
	return a
}

// timeOf is a time to the microsecond; nil: it is not known.
func timeOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Truncate(time.Microsecond)
	return &t
}

// detailOf returns the description of an agent with its commands. most bounds each text of the
// agent.
func detailOf(s *shown, most int) api.AgentDetail {
	d := api.AgentDetail{Agent: agentOf(s, most), Descriptions: make([]api.Command, len(s.Commands))}
	for i := range s.Commands {
		d.Descriptions[i] = commandOf(&s.Commands[i])
	}
	return d
}

func commandOf(c *agentcontrol.Command) api.Command {
	described := api.Command{Name: c.Name, Summary: c.Summary, Disruptive: c.Disruptive, Parameters: make([]api.Parameter, len(c.Parameters))}
	for i := range c.Parameters {
		p := &c.Parameters[i]
		described.Parameters[i] = api.Parameter{Name: p.Name, Summary: p.Summary, Kind: string(p.Kind), Required: p.Required, OneOf: p.OneOf}
		if p.Kind == agentcontrol.Integer {
			described.Parameters[i].Least, described.Parameters[i].Most = &p.Least, &p.Most
		}
		if p.DisruptiveIf != nil {
			described.Parameters[i].DisruptiveIf = p.DisruptiveIf.Text
		}
	}
	return described
}

// answerOf returns the answer of an agent, with at most so many items.
func answerOf(e *entry, command string, a agentcontrol.Answer, took time.Duration, most int) api.Answer {
	said := api.Answer{
		Agent: e.agent.ID(), Command: command, Message: clip(a.Message, maxText), Seconds: took.Seconds(),
		Details: make([]api.Detail, len(a.Details)), Items: make([]string, min(len(a.Items), most)),
	}
	for i, d := range a.Details {
		said.Details[i] = api.Detail{Name: d.Name, Value: clip(d.Value, maxText)}
	}
	for i := range said.Items {
		said.Items[i] = clip(a.Items[i], maxText)
	}
	said.MoreItems = len(a.Items) - len(said.Items)
	return said
}
