// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package session asks one process of a server for tasks, over one link.
//
//   - session.go: a Session begins runs when they are due, and decides what follows their end.
//   - work.go, orders.go: Work has the tasks of one process with their runs, and carries out orders
//     of operators. It survives a lost link.
//   - parts.go, part.go: a run whose pattern has a command for each method. prove.go: stacks that
//     show which methods call themselves.
//   - outcome.go: how a command ended. gate.go: how many instrument classes at the same time.
//   - resets.go: code that commands have left in classes, and the resets that remove it.
//   - identity.go, foreign.go: which process answers, and whether other clients have connected.
//   - details.go: details of recorded calls.
//   - order.go, settings.go: what a receiver passes in, and what it gets.
//
// One goroutine owns a Session and its Work. Each run has a goroutine, which handles its replies
// under the lock of the Work.
package session

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/greys"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/counters"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/link"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/process"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/task"
)

// Settings are those of all sessions with one server.
type Settings struct {
	// PerMethod asks for each method of a console's pattern by a command of its own.
	PerMethod bool
	// RecursionCheck is how many calls of a method prove its times; 0: nothing is checked.
	RecursionCheck int
	// RecordDetails has details of recorded calls asked for.
	RecordDetails bool
	// StateInterval is how often the server identifies itself, RecordsInterval how often it lists
	// recorded calls by GP.
	StateInterval, RecordsInterval time.Duration
	// Timeout bounds connecting and sending, AnswerTimeout a reply that has to come.
	Timeout, AnswerTimeout time.Duration
	// Reconnect are the pauses before a failed command is asked for again.
	Reconnect backoff.Config
	// MaxCommands bounds the tasks that instrument, MaxPatternCommands the commands of a pattern,
	// MaxDetails the recorded calls that wait for their detail.
	MaxCommands, MaxPatternCommands, MaxDetails int
	// Timezone is the setting of that name, for a log line.
	Timezone string

	// IsForwarded reports whether a pipeline takes the results of a kind of task.
	IsForwarded func(task.Kind) bool
	// OwnSessions returns how many sessions of the server are the receiver's: the least, and the
	// most.
	OwnSessions func() (least, most int64)
	// Shutdown ends when the time of the receiver's shutdown is over, LastAsking when that for
	// asking servers is. They are nil before the start.
	Shutdown, LastAsking context.Context

	Counters *counters.Counters
	Logger   *zap.Logger
	Now      func() time.Time
}

// Events gets the results of a session. Several goroutines may call it, some of them with the lock
// of the Work. A result is valid until the method returns.
type Events interface {
	// Tree is a traced call, Stack a call of a stack task.
	Tree(*greys.Tree)
	Stack(*task.Task, *greys.CallStack)
	// Call is a recorded call.
	Call(*Call)
	// Class and Method are listed ones that are new, or have changed. Gone is one that a complete
	// list no longer has.
	Class(*task.Task, *greys.Class, process.Change)
	Method(*task.Task, *greys.Method, process.Change)
	Gone(t *task.Task, name string)
	// Problem is a problem of a task. why is nil where the problem says all.
	Problem(p Problem, t *task.Task, why error)
}

// Call is a recorded call.
type Call struct {
	greys.Record
	Received time.Time
	// Traced: a command has a call tree of the same call.
	Traced bool
	// Detail is nil where it is unknown.
	Detail *greys.RecordDetail
}

// Problem is why a task has no results.
type Problem uint8

const (
	// Unmatched: its patterns match nothing.
	Unmatched Problem = iota
	// TimedOut: the server ended its session for silence.
	TimedOut
	// Unsupported: the server does not know the command.
	Unsupported
	// Refused: the server refused the command after it seemed to have begun.
	Refused
)

// Errors for which a session ends, or a command of it.
var (
	// ErrShutdown says that the collector is shut down.
	ErrShutdown = errors.New("the collector is shut down")
	// ErrSlow says that a short command got no reply in time.
	ErrSlow = errors.New("the server did not answer in time")
)

// ControlTimeout bounds a short command: the console connects for it, and asks another one before.
func (s *Settings) ControlTimeout() time.Duration { return s.Timeout + 2*s.AnswerTimeout }

// control asks a short command.
func (s *Settings) control(ctx context.Context, l *link.Link, command greys.Command, each func(greys.Reply)) error {
	ctx, end := context.WithTimeoutCause(ctx, s.ControlTimeout(), ErrSlow)
	defer end()
	err := l.Run(ctx, command, each)
	if err != nil && s.Shutdown != nil && s.Shutdown.Err() != nil {
		return receiverkit.ErrPeerTime // on a busy machine the connections are closed first
	}
	return Because(ctx, err)
}

// Because returns the cause of an error where a time was over.
func Because(ctx context.Context, err error) error {
	why := context.Cause(ctx)
	if err != nil && (errors.Is(why, ErrSlow) || errors.Is(why, receiverkit.ErrPeerTime)) {
		return why
	}
	return err
}

// isReply reports whether an error is a reply of the server: it has understood the command.
func isReply(err error) bool {
	return errors.Is(err, greys.ErrUnsupported) || errors.Is(err, greys.ErrRefused)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
