// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package hq

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

// machineEvents are all events of an agent, by name.
var machineEvents = map[string]func(m *Machine) []Command{
	"prepared":         (*Machine).Prepared,
	"suspend":          func(m *Machine) []Command { return m.Suspend(Operator) },
	"resume":           func(m *Machine) []Command { return m.Resume(Operator) },
	"overload":         func(m *Machine) []Command { return m.Suspend(Overload) },
	"overload is over": func(m *Machine) []Command { return m.Resume(Overload) },
	"leave":            func(m *Machine) []Command { return m.Suspend(Leaving) },
	"stay":             func(m *Machine) []Command { return m.Resume(Leaving) },
	"pause":            func(m *Machine) []Command { return m.Pause(true) },
	"unpause":          func(m *Machine) []Command { return m.Pause(false) },
	"stop":             (*Machine).Stop,
	"withdraw":         func(m *Machine) []Command { return m.Withdraw(Operator) },
	"answer":           func(m *Machine) []Command { return m.DataBreak(7) },
	"time":             (*Machine).Overdue,
	"says paused":      func(m *Machine) []Command { return m.Heartbeat(bytefrog.ModePaused) },
	"says tracing":     func(m *Machine) []Command { return m.Heartbeat(bytefrog.ModeTracing) },
	"shuts down":       func(m *Machine) []Command { return m.Heartbeat(bytefrog.ModeShuttingDown) },
	"release":          (*Machine).Release,
	"end":              (*Machine).End,
}

func TestTheCommandsForASequenceOfEvents(t *testing.T) {
	for _, c := range []struct {
		name, events, commands string
		state                  State
	}{
		{"an agent that has not been started gets none", "suspend, pause, time", "", Preparing},
		{"a prepared agent traces by itself", "prepared", "", Tracing},
		{"suspend, its answer, unsuspend", "prepared, suspend, answer, resume", "suspend unsuspend", Tracing},
		{"a wish from before is obeyed when the agent is prepared", "suspend, prepared", "suspend", Suspending},
		{"suspend is sent once", "prepared, suspend, suspend, overload", "suspend", Suspending},
		{"an answer suspends", "prepared, suspend, answer", "suspend", Suspended},
		{"unsuspend waits for the last reason", "prepared, overload, suspend, answer, overload is over, resume", "suspend unsuspend", Tracing},
		{"unsuspend waits for the answer", "prepared, suspend, resume", "suspend", Suspending},
		{"the answer arrives after the last reason ended", "prepared, suspend, resume, answer", "suspend unsuspend", Tracing},
		{"no answer in time", "prepared, suspend, time", "suspend", Unanswered},
		{"unsuspend after no answer in time", "prepared, suspend, resume, time", "suspend unsuspend", Tracing},
		{"the time is over before the reason ends", "prepared, suspend, time, resume", "suspend unsuspend", Tracing},
		{"a late answer suspends", "prepared, suspend, time, answer", "suspend", Suspended},
		{"suspend again", "prepared, suspend, answer, resume, suspend", "suspend unsuspend suspend", Suspending},
		{"a break without a request is no answer", "prepared, answer, suspend, resume", "suspend", Suspending},
		{"time that passes while the agent traces changes nothing", "prepared, time", "", Tracing},

		{"pause and unpause", "prepared, pause, pause, unpause, unpause", "pause unpause", Tracing},
		{"paused", "prepared, pause", "pause", Paused},
		{"a pause from before is sent when the agent is prepared", "pause, prepared", "pause", Paused},
		{"a pause that was withdrawn before is not sent", "pause, unpause, prepared", "", Tracing},
		{"a paused program continues before suspend, and is paused after it", "prepared, pause, suspend, answer, resume", "pause unpause suspend unsuspend pause", Paused},
		{"pause waits for the end of a suspension", "prepared, suspend, pause, answer, resume", "suspend unsuspend pause", Paused},
		{"pause after no answer in time", "prepared, suspend, pause, time, resume", "suspend unsuspend pause", Paused},
		{"a pause that was withdrawn during a suspension is not sent", "prepared, suspend, pause, unpause, answer, resume", "suspend unsuspend", Tracing},

		{"stop ends tracing, and nothing follows", "prepared, stop, stop, suspend, pause", "stop", Ended},
		{"stop from before is the only command", "stop, suspend, pause, prepared", "stop", Ended},
		{"a paused program continues before stop", "prepared, pause, stop", "pause unpause stop", Ended},
		{"stop while suspended", "prepared, suspend, answer, stop", "suspend stop", Ended},
		{"stop while suspend waits for its answer", "prepared, suspend, stop", "suspend stop", Ended},
		{"stop after no answer in time", "prepared, suspend, time, stop", "suspend stop", Ended},

		{"an agent that ends gets no command", "prepared, end, suspend, resume, pause", "", Ended},
		{"an agent that shuts down gets no command", "prepared, shuts down, suspend, pause", "", Ended},
		{"a paused program continues when its agent is disconnected", "prepared, pause, leave, pause, answer, pause", "pause unpause suspend", Suspended},
		{"leaving is for good", "prepared, leave, answer, resume, withdraw, stay", "suspend", Suspended},
		{"a paused program continues before error", "prepared, pause, release, pause, suspend", "pause unpause", Ended},
		{"nothing before error where the program runs", "prepared, release", "", Ended},
		{"the wishes of a lost collector are void", "prepared, pause, suspend, answer, withdraw", "pause unpause suspend unsuspend", Tracing},
		{"also those that were not sent", "pause, suspend, stop, withdraw, prepared", "", Tracing},
		{"a stop that was sent stays", "prepared, stop, withdraw, suspend", "stop", Ended},

		{"a program that an earlier headquarters paused", "prepared, says paused", "", Paused},
		{"it gets unpause", "prepared, says paused, unpause", "unpause", Tracing},
		{"it goes on before suspend", "prepared, says paused, suspend", "unpause suspend", Suspending},
		{"the first heartbeat reports it", "says paused, prepared, unpause", "unpause", Tracing},
		{"another headquarters resumes it", "prepared, says paused, says tracing, suspend", "suspend", Suspending},
		{"also before the agent is prepared", "says paused, says tracing, prepared", "", Tracing},
		{"a heartbeat after a command may be older than the command", "prepared, pause, unpause, says paused, suspend", "pause unpause suspend", Suspending},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, commands := &Machine{}, []string{}
			for event := range strings.SplitSeq(c.events, ", ") {
				for _, command := range machineEvents[event](m) {
					commands = append(commands, command.Of.String())
				}
			}
			assert.Equal(t, c.commands, strings.Join(commands, " "))
			assert.Equal(t, c.state, m.Status().State, m.Status().State.String())
		})
	}
}

func TestAReasonThatYieldsWaitsForTheEndOfAPause(t *testing.T) {
	for _, c := range []struct{ name, events, commands string }{
		{"it waits", "prepared, pause, overload", "pause"},
		{"it is sent with unpause", "prepared, pause, overload, unpause", "pause unpause suspend"},
		{"it is over before unpause", "prepared, pause, overload, overload is over, unpause", "pause unpause"},
		{"another reason does not wait", "prepared, pause, overload, suspend", "pause unpause suspend"},
		{"a pause waits", "prepared, overload, answer, pause", "suspend"},
		{"a pause waits for the end of the suspension", "prepared, overload, answer, pause, overload is over", "suspend unsuspend pause"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, commands := &Machine{Yielding: Overload}, []string{}
			for event := range strings.SplitSeq(c.events, ", ") {
				for _, command := range machineEvents[event](m) {
					commands = append(commands, command.Of.String())
				}
			}
			assert.Equal(t, c.commands, strings.Join(commands, " "))
		})
	}
}

func TestACommandHasItsStateAndReasons(t *testing.T) {
	m := &Machine{}
	m.Prepared()
	assert.Equal(t, []Command{{bytefrog.TypeSuspend, Tracing, Overload}}, m.Suspend(Overload))
	m.Resume(Overload)
	assert.Equal(t, []Command{{bytefrog.TypeUnsuspend, Unanswered, 0}}, m.Overdue())
	m.Suspend(Absence)
	m.Resume(Absence)
	assert.Equal(t, []Command{{bytefrog.TypeUnsuspend, Suspended, 0}}, m.DataBreak(1))
}

func TestTheBreakIsKnownUntilTheAgentTracesAgain(t *testing.T) {
	m := &Machine{}
	m.Prepared()
	m.DataBreak(3)
	assert.False(t, m.Status().Broken, "it answers no suspend")
	m.Suspend(Operator)
	m.DataBreak(7)
	assert.Equal(t, Status{State: Suspended, Reasons: Operator, BreakAt: 7, Broken: true}, m.Status())
	m.Resume(Operator)
	assert.False(t, m.Status().Broken)
	m.Suspend(Leaving)
	m.DataBreak(9)
	m.End()
	assert.Equal(t, Status{State: Ended, Reasons: Leaving, BreakAt: 9, Broken: true}, m.Status())
}

// strict is an agent that ends its tracing at a command that does not fit its mode, like the agent for Java. Its zero
// value traces.
type strict struct{ suspended, paused, ended bool }

// obey obeys a command, and reports false for one that ends tracing by mistake.
func (a *strict) obey(of bytefrog.MessageType) bool {
	switch {
	case a.ended:
		return false
	case of == bytefrog.TypeSuspend:
		fits := !a.suspended && !a.paused
		a.suspended = true
		return fits
	case of == bytefrog.TypeUnsuspend:
		fits := a.suspended
		a.suspended = false
		return fits
	case of == bytefrog.TypePause:
		fits := !a.suspended && !a.paused
		a.paused = true
		return fits
	case of == bytefrog.TypeUnpause:
		fits := a.paused
		a.paused = false
		return fits
	default:
		a.ended = true
		return !a.paused
	}
}

// world is a machine and the agent that obeys it.
type world struct {
	machine Machine
	agent   strict
}

// can reports whether an event can happen in a world: an agent shows a pause only if it was
// paused, and answers only if it was sent suspend.
func (w *world) can(event string) bool {
	switch event {
	case "says paused":
		return w.agent.paused
	case "says tracing":
		return !w.agent.paused && !w.agent.suspended
	default:
		return true
	}
}

// check returns the error in a world after an event.
func (w *world) check() error {
	s := w.machine.Status()
	switch m := &w.machine; {
	case s.State == Ended || s.State == Preparing:
		return nil
	case s.State.IsSuspended() != w.agent.suspended || (s.State == Paused) != w.agent.paused:
		return fmt.Errorf("the machine says %v, the agent is %+v", s.State, w.agent)
	case s.State == Tracing && (s.Reasons != 0 || m.stop || m.pause):
		return fmt.Errorf("the agent traces, against %+v", *m)
	case s.State == Suspended && s.Reasons == 0:
		return fmt.Errorf("the agent is suspended for nothing")
	case s.State == Paused && !m.pause:
		return fmt.Errorf("the program is paused without a request")
	}
	return nil
}

// Every world that events can lead to is visited: from each, each event. In none of them does
// the agent end its tracing by mistake, and each state of the machine is among them.
func TestNoSequenceOfEventsEndsTracingByMistake(t *testing.T) {
	for _, yielding := range []Reason{0, Overload} {
		for _, paused := range []bool{false, true} { // by an earlier headquarters
			begin := world{machine: Machine{Yielding: yielding}, agent: strict{paused: paused}}
			visited, states := map[world]string{begin: ""}, map[State]bool{}
			for queue := []world{begin}; len(queue) > 0; queue = queue[1:] {
				states[queue[0].machine.state] = true
				for name, event := range machineEvents {
					w := queue[0]
					if !w.can(name) || paused && name == "prepared" && !w.machine.foundPaused && !w.machine.commanded {
						continue // the first heartbeat of an agent that was traced before arrives before it is prepared
					}
					path := visited[queue[0]] + ", " + name
					for _, c := range event(&w.machine) {
						require.True(t, w.agent.obey(c.Of), "%v after%s", c.Of, path)
					}
					if !paused {
						require.NoError(t, w.check(), path)
					}
					if _, known := visited[w]; !known {
						visited[w] = path
						queue = append(queue, w)
					}
				}
			}
			assert.Len(t, states, stateCount, "states that were reached")
			assert.Greater(t, len(visited), 200)
		}
	}
}

// Long random sequences run against the same agent.
func TestLongRandomSequencesEndNoTracingByMistake(t *testing.T) {
	if testing.Short() {
		t.Skip("20,000 sequences take too long with the race detector: make test runs them without it")
	}
	names := slices.Sorted(maps.Keys(machineEvents))
	for seed := range uint64(20_000) {
		random := rand.New(rand.NewPCG(seed, 1))
		w, happened := world{}, []string{}
		for range 40 {
			name := names[random.IntN(len(names))]
			if !w.can(name) {
				continue
			}
			happened = append(happened, name)
			for _, c := range machineEvents[name](&w.machine) {
				require.True(t, w.agent.obey(c.Of), "seed %d: %v after %v", seed, c.Of, happened)
			}
			require.NoError(t, w.check(), "seed %d: after %v", seed, happened)
		}
	}
}
