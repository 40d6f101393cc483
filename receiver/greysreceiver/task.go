// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"errors"
	"fmt"
	"time"

	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/greys"
)

// want is something that is asked of a server, whichever process of it is there: what is
// configured, or what somebody has had started.
type want struct {
	ask
	// number tells it from all others of the server.
	number int
	// started says that somebody has had it started: it is forgotten when it is over. ended
	// says that somebody has had it ended. They change while the process's lock is held.
	started, ended bool
}

// task is a want as it is asked of one life of a server, again where it has to be. Its
// state is that of the goroutine that follows the server.
type task struct {
	*want

	state taskState
	// due is when it is asked, where that is to be.
	due    time.Time
	pauses *backoff.Backoff
	// run is the asking that goes on, where one does.
	run *run
	// answered is how many answers came of what its limit is for, in all runs.
	answered int64
	// failing is a burst of runs that failed, refusing one of those that the server refused.
	failing, refusing logline.Burst
	// unmatched is a burst of runs whose pattern matched nothing.
	unmatched logline.Burst
	// shortened is one of lists that have more than their limit.
	shortened logline.Burst
	// leavingAlone is one of methods that the server lists, and puts no code into.
	leavingAlone logline.Burst
	// starting are those who wait for what comes of the next run.
	starting []*starting

	// refusedParts are the names of parts that the server has refused, which are left out. The
	// process's lock guards them while a run goes on.
	refusedParts map[string]bool
	// unprovable says that the server sends no stacks of its methods. The same lock guards it.
	unprovable bool

	// matched is what the patterns matched when they were asked last, and taken how many of
	// the recorded calls that are listed were handed on for them. The process's lock guards
	// both.
	matched matched
	taken   int64
}

// taskState is what is to become of a task.
type taskState uint8

const (
	// taskDue is asked when its time has come: it was not yet, was lost or refused, its
	// pattern matched nothing, or it is one that is asked again and again.
	taskDue taskState = iota
	// taskRunning was asked.
	taskRunning
	// taskOver is not asked again in this life: its limit was reached, the server doesn't
	// support it, or somebody had it ended.
	taskOver
)

// ask is what a configuration says is to be asked for.
type ask struct {
	kind askKind
	// pattern is what it is about, as it is set.
	pattern string
	// command is asked for, with what is left of the limit; 0: there is none.
	command func(left greys.Limit) greys.Command
	// target and commandOf are those of what enhances: command asks for the target.
	target    greys.Target
	commandOf func(target greys.Target, left greys.Limit) greys.Command
	limit     greys.Limit
	// classes are those that it puts something into, for which it enhances.
	classes classes
	// cycle is that of a monitor.
	cycle time.Duration
	// every is how often it is asked; 0: it goes on by itself.
	every time.Duration
	// only is the protocol that it is for; empty: any.
	only Protocol
}

// askKind is what is asked for.
type askKind uint8

const (
	askMonitor askKind = iota
	askTrace
	askStack
	askRecords
	// askRecordList lists what is recorded, by whomever: GP can't have it recorded.
	askRecordList
	askClasses
	askMethods
)

func (k askKind) String() string {
	return [...]string{"monitor", "trace", "stack", "tt", "tt", "classes", "methods"}[k]
}

// enhances reports whether it puts something into classes, which a reset takes out.
func (k askKind) enhances() bool { return k <= askRecords }

// newWants makes of a configuration what is to be asked for. The error names fields.
func newWants(c *Config) ([]*want, error) {
	var asks []ask
	var all error
	add := func(a ask, err error) {
		for i := range asks {
			if err == nil && asks[i].kind == a.kind && asks[i].pattern == a.pattern {
				err = fmt.Errorf("%s has the patterns %s twice: name them once", a.kind, a.pattern)
			}
		}
		asks, all = append(asks, a), errors.Join(all, err)
	}
	for i := range c.Monitors {
		add(c.Monitors[i].ask(fmt.Sprintf("monitors[%d]", i)))
	}
	for i := range c.Traces {
		add(c.Traces[i].ask(fmt.Sprintf("traces[%d]", i), askTrace))
	}
	for i := range c.Stacks {
		add(c.Stacks[i].ask(fmt.Sprintf("stacks[%d]", i), askStack))
	}
	for i := range c.Records {
		add(c.Records[i].ask(fmt.Sprintf("tt[%d]", i), askRecords))
	}
	if len(c.Records) > 0 {
		add(c.recordList(), nil)
	}
	for i := range c.Classes {
		add(c.Classes[i].ask(fmt.Sprintf("classes[%d]", i), c.InventoryInterval))
	}
	for i := range c.Methods {
		add(c.Methods[i].ask(fmt.Sprintf("methods[%d]", i), c.InventoryInterval))
	}
	wants := make([]*want, 0, len(asks))
	for i := range asks {
		wants = append(wants, &want{ask: asks[i], number: i + 1})
	}
	return wants, all
}

// newTask makes of a want what is asked of a process.
func newTask(env *environment, w *want) *task {
	t := &task{want: w, pauses: backoff.New(env.config.Reconnect)}
	if w.ended || !env.wants(w.kind) {
		t.state = taskOver
	}
	return t
}

// isFull reports whether as many recorded calls were taken of lists as the limit has. The lock
// is held.
func (t *task) isFull() bool { return t.limit > 0 && t.taken >= int64(t.limit) }

// text is how patterns are set.
func (t *TargetConfig) text() string {
	text := t.Class + " " + t.Method
	if t.Regexp {
		text += " (regexp)"
	}
	return text
}

func (m *MonitorConfig) ask(field string) (ask, error) {
	target, err := m.target(field)
	cycle, wrong := m.cycle(field)
	a := ask{kind: askMonitor, pattern: m.text(), classes: classes{target.Class, target.Regexp}, cycle: cycle}
	a.asks(target, func(target greys.Target, _ greys.Limit) greys.Command {
		return greys.MonitorCommand{Target: target, Cycle: cycle}
	})
	return a, errors.Join(err, wrong)
}

// asks sets what is asked for methods.
func (a *ask) asks(target greys.Target, of func(target greys.Target, left greys.Limit) greys.Command) {
	a.target, a.commandOf = target, of
	a.command = func(left greys.Limit) greys.Command { return of(target, left) }
}

func (c *CallsConfig) ask(field string, kind askKind) (ask, error) {
	target, err := c.target(field)
	limit, wrong := limitOf(field, c.Limit, defaultCalls)
	a := ask{kind: kind, pattern: c.text(), classes: classes{target.Class, target.Regexp}, limit: limit}
	switch kind {
	case askTrace:
		a.asks(target, func(target greys.Target, left greys.Limit) greys.Command {
			return greys.TraceCommand{Target: target, Limit: left}
		})
	case askStack:
		a.asks(target, func(target greys.Target, left greys.Limit) greys.Command {
			return greys.StackCommand{Target: target, Limit: left}
		})
	default: // by GP recorded calls are listed
		a.only = ProtocolConsole
		a.asks(target, func(target greys.Target, left greys.Limit) greys.Command {
			return greys.RecordCommand{Target: target, Limit: left}
		})
	}
	return a, errors.Join(err, wrong)
}

// recordList lists what is recorded, for all that want recorded calls.
func (c *Config) recordList() ask {
	return ask{
		kind: askRecordList, every: c.GP.RecordsInterval, only: ProtocolGP,
		command: func(greys.Limit) greys.Command { return greys.RecordsCommand{} },
	}
}

func (c *ClassesConfig) ask(field string, every time.Duration) (ask, error) {
	class, err := pattern(field+".class", c.Class, "com.example.*")
	limit, wrong := limitOf(field, c.Limit, defaultInventory)
	text := c.Class
	if c.Regexp {
		text += " (regexp)"
	}
	return ask{
		kind: askClasses, pattern: text, limit: limit, every: every,
		command: func(greys.Limit) greys.Command {
			return greys.ClassesCommand{Class: class, Regexp: c.Regexp, Fields: c.Fields}
		},
	}, errors.Join(err, wrong)
}

func (c *MethodsConfig) ask(field string, every time.Duration) (ask, error) {
	target, err := c.target(field)
	limit, wrong := limitOf(field, c.Limit, defaultInventory)
	return ask{
		kind: askMethods, pattern: c.text(), limit: limit, every: every,
		command: func(greys.Limit) greys.Command { return greys.MethodsCommand{Target: target} },
	}, errors.Join(err, wrong)
}

// left is what is left of the limit of what goes on by itself; 0: there is none.
func (t *task) left() greys.Limit {
	if t.limit == 0 || t.every > 0 {
		return 0
	}
	return t.limit - greys.Limit(t.answered)
}
