// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package task defines the configured commands of a server.
package task

import (
	"time"

	"github.com/callbraid/callbraid/internal/arthas"
	"github.com/callbraid/callbraid/internal/javamethods"
)

// Kind is the command of a task.
type Kind uint8

// The kinds of tasks. Each instruments classes.
const (
	Monitor Kind = iota
	Trace
	Stack
	Watch
	Record
)

func (k Kind) String() string {
	return [...]string{"monitor", "trace", "stack", "watch", "tt"}[k]
}

// Unlimited is the limit of a task without a limit.
const Unlimited = 0

// Task is a command on methods, which runs as long as the process lives, or until its limit is reached.
type Task struct {
	// Number is the position of the task in the configuration.
	Number int
	Kind   Kind
	// Pattern has the patterns for log lines and attributes.
	Pattern string
	Target  arthas.Target
	// Limit is the number of results in the life of a process, or [Unlimited].
	Limit int64
	// Condition may be missing.
	Condition arthas.Expression

	// Cycle is for monitors.
	Cycle time.Duration
	// JDKMethods is for traces.
	JDKMethods bool
	// Value, Depth and the points are for watches.
	Value                              arthas.Expression
	Depth                              int32
	Before, Success, Exception, Finish bool
}

// Classes are the classes that the task may instrument.
func (t *Task) Classes() javamethods.Classes {
	return javamethods.Classes{Pattern: t.Target.Class, Regexp: t.Target.Regexp}
}

// Command returns the command for the rest of the limit. rest is at least 1, or [Unlimited].
func (t *Task) Command(rest int64) arthas.Command {
	limit := arthas.MaxLimit
	if rest != Unlimited {
		limit = arthas.Limit(min(rest, int64(arthas.MaxLimit)))
	}
	switch t.Kind {
	case Monitor:
		return arthas.MonitorCommand{Target: t.Target, Cycle: t.Cycle, Limit: limit, Condition: t.Condition}
	case Trace:
		return arthas.TraceCommand{Target: t.Target, Limit: limit, Condition: t.Condition, JDKMethods: t.JDKMethods}
	case Stack:
		return arthas.StackCommand{Target: t.Target, Limit: limit, Condition: t.Condition}
	case Watch:
		return arthas.WatchCommand{
			Target: t.Target, Before: t.Before, Success: t.Success, Exception: t.Exception, Finish: t.Finish,
			Value: t.Value, Depth: t.Depth, Limit: limit, Condition: t.Condition,
		}
	default:
		return arthas.RecordCommand{Target: t.Target, Limit: limit, Condition: t.Condition}
	}
}
