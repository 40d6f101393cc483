// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package task defines the tasks of a server, from the configuration or from an operator. Tasks have no state of a
// server.
package task

import (
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// Kind is the kind of a task.
type Kind uint8

const (
	Monitor Kind = iota
	Trace
	Stack
	Watch
	Records
	// RecordList lists the recorded calls of all clients, where the protocol has no command that records.
	RecordList
	Classes
	Methods
)

var names = [...]string{"monitor", "trace", "stack", "watch", "tt", "tt", "classes", "methods"}

func (k Kind) String() string { return names[k] }

// Instruments reports whether the server changes classes for the task. A reset restores them.
func (k Kind) Instruments() bool { return k <= Records }

// HasCommand reports whether a server has a command for the task. listsRecords means that the server only lists
// recorded calls.
func (k Kind) HasCommand(listsRecords bool) bool {
	switch k {
	case Records:
		return !listsRecords
	case RecordList:
		return listsRecords
	default:
		return true
	}
}

// Task is one task for a server. It survives restarts of the server.
type Task struct {
	Kind Kind
	// Pattern is the text of the configured patterns.
	Pattern string
	// Target has the patterns. Tasks that list classes have no method, and lists of records have neither.
	Target javamethods.Target
	// Limit is the maximum number of calls or of listed items; 0 means no limit.
	Limit javamethods.Limit
	// Cycle is the cycle of a monitor, in whole seconds.
	Cycle time.Duration
	// Every is the interval of a list; 0 means that the command runs until its limit.
	Every time.Duration
	// Fields lists the fields of classes too.
	Fields bool
	// Own returns the command of a task with the rest of its limit, in the words of the only tracer that has its options.
	// Nil means that the fields above are all options.
	Own func(t *Task, limit javamethods.Limit) javamethods.Command

	// Number identifies the task within its server; the first is 1.
	Number int
	// Started means that an operator started it; the receiver removes it when it is over. Ended means that an operator
	// ended it.
	Started, Ended bool
}

// Command returns the server's command for the task, with the rest of its limit; 0 means no limit.
func (t *Task) Command(limit javamethods.Limit) javamethods.Command {
	if t.Own != nil {
		return t.Own(t, limit)
	}
	return t.CommandFor(t.Target, limit)
}

// CommandFor returns the command for another target.
func (t *Task) CommandFor(target javamethods.Target, limit javamethods.Limit) javamethods.Command {
	switch t.Kind {
	case Monitor:
		return javamethods.MonitorCommand{Target: target, Cycle: t.Cycle}
	case Trace:
		return javamethods.TraceCommand{Target: target, Limit: limit}
	case Stack:
		return javamethods.StackCommand{Target: target, Limit: limit}
	case Records:
		return javamethods.RecordCommand{Target: target, Limit: limit}
	case RecordList:
		return javamethods.RecordsCommand{}
	case Classes:
		return javamethods.ClassesCommand{Class: target.Class, Regexp: target.Regexp, Fields: t.Fields}
	default:
		return javamethods.MethodsCommand{Target: target}
	}
}

// Classes returns the classes of the task's pattern.
func (t *Task) Classes() javamethods.Classes {
	return javamethods.Classes{Pattern: t.Target.Class, Regexp: t.Target.Regexp}
}

// LogFields returns log fields that identify the task.
func (t *Task) LogFields() []zap.Field {
	return []zap.Field{zap.Stringer("command", t.Kind), zap.String("pattern", t.Pattern)}
}
