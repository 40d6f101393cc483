// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package task defines what a server is asked for: by the configuration, or by an operator.
// It has no state of a server.
package task

import (
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/greys"
)

// Kind is what a task asks for.
type Kind uint8

const (
	Monitor Kind = iota
	Trace
	Stack
	Records
	// RecordList lists the recorded calls of all clients: GP has no command that records.
	RecordList
	Classes
	Methods
)

var names = [...]string{"monitor", "trace", "stack", "tt", "tt", "classes", "methods"}

func (k Kind) String() string { return names[k] }

// Instruments reports whether the server changes classes for the task. A reset restores them.
func (k Kind) Instruments() bool { return k <= Records }

// AskedBy reports whether the task has a command in a protocol.
func (k Kind) AskedBy(p greys.Protocol) bool {
	switch k {
	case Records:
		return p == greys.ProtocolConsole
	case RecordList:
		return p == greys.ProtocolGP
	default:
		return true
	}
}

// Task is one thing to ask a server for. It stays when the server restarts.
type Task struct {
	Kind Kind
	// Pattern is the text of the configured patterns.
	Pattern string
	// Target has the patterns. Tasks of classes have no method, lists of records have neither.
	Target greys.Target
	// Limit is the most calls, or listed items; 0: no limit.
	Limit greys.Limit
	// Cycle is that of a monitor, in whole seconds.
	Cycle time.Duration
	// Every is the interval of a list; 0: the command runs until its limit.
	Every time.Duration
	// Fields has fields of classes listed, too.
	Fields bool

	// Number tells the task from others of its server, from 1.
	Number int
	// Started: an operator started it. The receiver forgets it when it is over.
	// Ended: an operator ended it.
	Started, Ended bool
}

// Command is the server's command for the task, with the rest of its limit; 0: no limit.
func (t *Task) Command(left greys.Limit) greys.Command { return t.CommandFor(t.Target, left) }

// CommandFor is the same for another target.
func (t *Task) CommandFor(target greys.Target, left greys.Limit) greys.Command {
	switch t.Kind {
	case Monitor:
		return greys.MonitorCommand{Target: target, Cycle: t.Cycle}
	case Trace:
		return greys.TraceCommand{Target: target, Limit: left}
	case Stack:
		return greys.StackCommand{Target: target, Limit: left}
	case Records:
		return greys.RecordCommand{Target: target, Limit: left}
	case RecordList:
		return greys.RecordsCommand{}
	case Classes:
		return greys.ClassesCommand{Class: target.Class, Regexp: target.Regexp, Fields: t.Fields}
	default:
		return greys.MethodsCommand{Target: target}
	}
}

// Classes are the classes that the task names.
func (t *Task) Classes() greys.Classes {
	return greys.Classes{Pattern: t.Target.Class, Regexp: t.Target.Regexp}
}

// LogFields are the fields of a log line that name the task.
func (t *Task) LogFields() []zap.Field {
	return []zap.Field{zap.Stringer("command", t.Kind), zap.String("pattern", t.Pattern)}
}
