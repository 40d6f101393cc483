// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogagent

import "context"

// Agent is one agent in one traced program. Run it once.
type Agent struct {
	run *run
}

// New returns an agent that traces p.
func New(o Options, p Program) *Agent {
	return &Agent{run: newRun(o.withDefaults(), p)}
}

// Run connects and runs the program. It returns the result after all connections are closed and all goroutines have
// ended. The end of ctx kills the program's process: its connections are cut.
func (a *Agent) Run(ctx context.Context) Result { return a.run.play(ctx) }

// Stop ends the program early but normally, like its user. It does not wait.
func (a *Agent) Stop() { a.run.change(func(l *life) { l.quit() }) }

// Freeze stops the program's process, like a debugger or a paused machine: nothing is read, carried out or sent until
// Thaw. Messages of the HQ wait meanwhile.
func (a *Agent) Freeze() { a.run.change(func(l *life) { l.frozen = true }) }

// Thaw continues a frozen process.
func (a *Agent) Thaw() { a.run.change(func(l *life) { l.frozen = false }) }

// Stats returns the counts so far. It may be called during Run.
func (a *Agent) Stats() Stats { return a.run.statistics() }
