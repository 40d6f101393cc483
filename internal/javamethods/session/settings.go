// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package session runs the tasks of one process of a server over one link.
//
//   - session.go: a Session starts runs when they are due, and schedules their jobs after the end.
//   - work.go, orders.go: Work has the tasks of one process with their runs, and carries out orders
//     of operators. It survives a lost link.
//   - parts.go, part.go: a run whose pattern has a command for each method. prove.go: stacks that
//     show which methods call themselves.
//   - outcome.go: how a command ended. gate.go: how many instrument classes at the same time.
//   - resets.go: instrumentation that commands have left in classes, and the resets that remove it.
//   - identity.go, foreign.go: the identity of the process, and connections of other clients.
//   - details.go: details of recorded calls.
//   - order.go, settings.go, link.go: inputs and outputs of the package.
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
	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/javamethods/process"
	"github.com/callbraid/callbraid/internal/javamethods/task"
	"github.com/callbraid/callbraid/internal/receiverkit"
)

// Settings are the settings of all sessions with one server.
type Settings struct {
	// PerMethod sends one command for each method of a console's pattern.
	PerMethod bool
	// RecursionCheck is the number of calls that prove the times of a method; 0 means no check.
	RecursionCheck int
	// RecordDetails requests details of recorded calls.
	RecordDetails bool
	// StateInterval is the interval of identity checks. RecordsInterval is the interval of lists of recorded calls by
	// GP.
	StateInterval, RecordsInterval time.Duration
	// Timeout limits connecting and sending. AnswerTimeout limits the time for an expected reply.
	Timeout, AnswerTimeout time.Duration
	// Reconnect are the pauses before a failed command is sent again.
	Reconnect backoff.Config
	// MaxCommands limits the tasks that instrument, MaxPatternCommands the commands of a pattern, and MaxDetails the
	// recorded calls that wait for their detail.
	MaxCommands, MaxPatternCommands, MaxDetails int
	// Timezone is the value of that setting, for a log line.
	Timezone string

	// IsForwarded reports whether a pipeline accepts the results of a kind of task.
	IsForwarded func(task.Kind) bool
	// OwnSessions returns a lower and an upper bound of the receiver's own sessions at the server.
	OwnSessions func() (least, most int64)
	// Shutdown ends with the time of the receiver's shutdown. LastAsking ends with the part of it for commands to
	// servers. They are nil before the start.
	Shutdown, LastAsking context.Context

	Counters Counters
	Logger   *zap.Logger
	Now      func() time.Time
}

// Events receives the results of a session. Several goroutines may call it, some of them with the lock of the Work. A
// result is valid until the method returns.
type Events interface {
	// Tree receives a traced call. Stack receives a call of a stack task.
	Tree(*javamethods.Tree)
	Stack(*task.Task, *javamethods.CallStack)
	// Watch receives a watched value.
	Watch(*task.Task, *javamethods.Watch)
	// Call receives a recorded call.
	Call(*Call)
	// Class and Method receive new and changed ones of a list. Gone receives the name of one that a complete list no
	// longer has.
	Class(*task.Task, *javamethods.Class, process.Change)
	Method(*task.Task, *javamethods.Method, process.Change)
	Gone(t *task.Task, name string)
	// Problem receives a problem of a task. why is nil if the kind of problem is the whole reason.
	Problem(p Problem, t *task.Task, why error)
}

// Counters counts events of sessions. Several goroutines use it.
type Counters interface {
	process.Counters
	// CommandEnded counts the end of a command, by its outcome. Reset counts a reset, by its result.
	CommandEnded(outcome string)
	Reset(error)
	// Link counts those counts of a link that belong to no process.
	Link(since Stats)
	// ForeignSessions counts sessions of other clients, and ForeignReset a suspected reset by one.
	ForeignSessions(n int64)
	ForeignReset()
	// MethodsLeftOut counts methods of a pattern that are not watched, by the reason.
	MethodsLeftOut(n int, reason string)
	// RecordWithoutDetail counts a recorded call that is forwarded without its detail.
	RecordWithoutDetail()
}

// Reasons why methods of a pattern are not watched.
const (
	LeftOutRefused = "refused"
	LeftOutNoCode  = "no_code"
	LeftOutNoRoom  = "no_room"
)

// Call is a recorded call.
type Call struct {
	javamethods.Record
	// Task is the task of the call; nil means that it is of a list of all clients' calls.
	Task     *task.Task
	Received time.Time
	// Traced means that a command has a call tree of the same call.
	Traced bool
	// Detail is nil if it is unknown.
	Detail *javamethods.RecordDetail
}

// Problem is a reason why a task has no results.
type Problem uint8

const (
	// Unmatched means that its patterns match nothing.
	Unmatched Problem = iota
	// TimedOut means that the server ended its idle session.
	TimedOut
	// Unsupported means that the server does not know the command.
	Unsupported
	// Refused means that the server refused the command. An order whose command is refused is no problem, unless the
	// command seemed to have begun.
	Refused
)

// Errors that end a session, or a command of it.
var (
	// ErrShutdown means that the collector shuts down.
	ErrShutdown = errors.New("the collector is shut down")
	// ErrSlow means that a short command had no reply in time.
	ErrSlow = errors.New("the server did not answer in time")
)

// ControlTimeout limits a short command: the time to connect, and two times an answer.
func (s *Settings) ControlTimeout() time.Duration { return s.Timeout + 2*s.AnswerTimeout }

// control sends a short command.
func (s *Settings) control(ctx context.Context, l *Link, command javamethods.Command, each func(javamethods.Reply)) error {
	ctx, end := context.WithTimeoutCause(ctx, s.ControlTimeout(), ErrSlow)
	defer end()
	err := l.Run(ctx, command, each)
	if err != nil && s.Shutdown != nil && s.Shutdown.Err() != nil {
		return receiverkit.ErrPeerTime // on a busy machine the connections close first
	}
	return Because(ctx, err)
}

// Because returns the cause of an error if a time limit has ended ctx.
func Because(ctx context.Context, err error) error {
	why := context.Cause(ctx)
	if err != nil && (errors.Is(why, ErrSlow) || errors.Is(why, receiverkit.ErrPeerTime)) {
		return why
	}
	return err
}

// isReply reports whether an error is a reply of the server: the server has understood the command.
func isReply(err error) bool {
	return errors.Is(err, javamethods.ErrUnsupported) || errors.Is(err, javamethods.ErrRefused)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
