// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"fmt"

	"github.com/callbraid/callbraid/internal/agentcontrol"
)

// list says what is asked of the server, and how it goes.
func (a *attending) list(o *order) {
	var items []string
	running := 0
	for _, t := range a.process.tasks {
		if !t.kind.enhances() {
			continue
		}
		if t.state == taskRunning {
			running++
		}
		items = append(items, a.describe(t))
	}
	o.say(outcomeOfOrder{answer: agentcontrol.Answer{
		Message: fmt.Sprintf("%d of %d run", running, len(items)), Items: items,
	}})
}

// describe says a task as a person reads it.
func (a *attending) describe(t *task) string {
	text := fmt.Sprintf("%d %v %s", t.number, t.kind, t.pattern)
	switch {
	case t.cycle > 0:
		text += fmt.Sprintf(", cycles of %v", t.cycle)
	case t.limit > 0:
		text += fmt.Sprintf(", %d calls", t.limit)
	}
	if !t.started {
		text += ", configured"
	}
	a.process.mu.Lock()
	defer a.process.mu.Unlock()
	text += ": " + a.goes(t)
	if m := t.matched; m.known {
		text += fmt.Sprintf(", matches %d classes and %d methods", m.classes, m.methods)
	}
	return text
}

// goes says how a task goes. The lock is held.
func (a *attending) goes(t *task) string {
	switch {
	case t.ended:
		return "ended"
	case !a.server.env.wants(t.kind):
		return "no pipeline takes it"
	case t.state == taskRunning && t.kind == askMonitor:
		return "running"
	case t.state == taskRunning:
		return fmt.Sprintf("running, %d calls told", t.run.total())
	case t.state == taskOver:
		return "over"
	case t.only != "" && t.only != a.link.protocol:
		return fmt.Sprintf("taken from the server's list, %d calls told", t.taken)
	default:
		return "to be asked again"
	}
}
