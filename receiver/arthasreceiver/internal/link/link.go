// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package link is the client's side of one Arthas server for sessions of internal/javamethods/session. Each command that
// instruments classes has a session of its own at the server. The package stores the open ones, so that the next
// connection or the next collector ends them.
//
//   - link.go: connections, and short commands.
//   - job.go: one command in its session.
//   - forget.go: recorded calls that the program keeps in its memory.
//   - replies.go, tree.go: results of Arthas as replies of internal/javamethods.
//
// # Resets
//
// The server keeps classes instrumented when a command ends. A reset during a command leaves the command's classes
// instrumented, and no later reset restores them. So before a reset, and before each command, the link ends the stored
// sessions without a command of its own. A session of javamethods sends no reset while its own command may use the classes.
package link

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callbraid/callbraid/internal/arthas"
	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/javamethods/session"
	"github.com/callbraid/callbraid/internal/receiverkit/servermemory"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/remembered"
)

// Settings are the settings of a Dialer.
type Settings struct {
	// NewClient returns a client whose answers count in reserve.
	NewClient func(reserve func(more int) error) (*arthas.Client, error)
	Store     *remembered.Store
	// PollInterval is the pause before the next poll of a command without waiting results. It grows with each poll without
	// results, so that the polls of all idle commands together come at most once in IdlePollInterval.
	PollInterval, IdlePollInterval time.Duration
	// Context ends all requests: the time to end sessions at a shutdown is then over. Pulling ends all polls: at a shutdown
	// earlier, so that there is time to close the sessions and to restore the classes.
	Context, Pulling context.Context
	// Memory counts the answers.
	Memory *servermemory.Memory
	// Count changes a count. Several goroutines call it.
	Count func(what Count, n int64)
	Now   func() time.Time
}

// Command is the command of a task, in Arthas' words.
type Command struct {
	javamethods.OwnCommand
	// Limit is the number of results after which the command ends; 0 means that it runs until it is interrupted.
	Limit arthas.Limit
	// Within returns the command with a limit.
	Within func(arthas.Limit) arthas.Command
	// Classes are the classes that it may instrument.
	Classes javamethods.Classes
	// Forgets means that recorded calls are deleted in the program after their receipt.
	Forgets bool
	// Identified means that the values of a watch begin with the IDs of a trace and a span.
	Identified bool
	// Cycle is the cycle of a monitor. Others have none.
	Cycle time.Duration
}

// Dialer makes the links of one server. Several goroutines may use it.
type Dialer struct {
	Settings
	current atomic.Pointer[link]
}

// dialect describes Arthas.
var dialect = session.Dialect{Aborts: true, OneLayer: true}

// Connect returns a new link. The first request shows whether the server answers.
func (d *Dialer) Connect() (*session.Link, error) {
	l := &link{Dialer: d, forgotten: make(chan recordOf, maxForgotten), running: map[string]bool{}, busy: make(chan struct{})}
	var end context.CancelFunc
	l.ctx, end = context.WithCancel(d.Context)
	buffer := d.Memory.Connected(closer(end))
	var err error
	l.client, err = d.NewClient(func(more int) error { return d.Memory.Add(buffer, more) })
	if err != nil {
		end()
		return nil, err
	}
	d.current.Store(l)
	var forgetting sync.WaitGroup
	forgetting.Go(l.forgetAll)
	return &session.Link{
		Asker: l, Dialect: dialect, Begin: l.begin, Total: l.total, Unsent: isUnsent,
		IsSame:    l.answeredAfter,
		IsForeign: func(err error) bool { return isLost(err) },
		Close: func() {
			close(l.forgotten) // no command runs
			forgetting.Wait()
			end()
			d.Memory.Disconnected(buffer)
		},
	}, nil
}

// closer ends all requests of a link.
type closer func()

func (c closer) Close() error {
	c()
	return nil
}

// ErrNoLink means that the server is not connected.
var ErrNoLink = errors.New("the server is not connected")

// Exec carries out a command that ends by itself, over the last link.
func (d *Dialer) Exec(ctx context.Context, command arthas.Command) ([]arthas.Result, error) {
	l := d.current.Load()
	if l == nil {
		return nil, ErrNoLink
	}
	return l.exec(ctx, command)
}

// link implements [session.Asker].
type link struct {
	*Dialer
	client *arthas.Client
	// ctx ends when the link is closed, or its memory has to be freed.
	ctx context.Context

	// forgotten has the recorded calls to delete.
	forgotten chan recordOf
	// ending is locked while stored sessions are ended.
	ending sync.Mutex

	mu    sync.Mutex
	stats session.Stats
	// running has the IDs of sessions in which commands run.
	running map[string]bool
	// busy is closed and replaced when a command has results after a rest.
	busy chan struct{}
	// life is the number of processes so far.
	life int
	// answered is the time of the last answered poll. No other process knows the session of it.
	answered time.Time
}

// total returns the counts of the link.
func (l *link) total() session.Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stats
}

// within returns a context that ends with both contexts.
func (l *link) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancel(ctx)
	stop := context.AfterFunc(l.ctx, end)
	return ctx, func() {
		stop()
		end()
	}
}

// Run sends a command, and waits for its end.
func (l *link) Run(ctx context.Context, command javamethods.Command, each func(javamethods.Reply)) error {
	switch c := command.(type) {
	case Command:
		return l.runJob(ctx, c, each)
	case javamethods.VersionCommand:
		ctx, end := l.within(ctx)
		defer end()
		version, err := l.client.Identify(ctx)
		if err == nil {
			each(&javamethods.Version{Text: version})
		}
		return err
	case javamethods.SessionsCommand:
		return l.identify(ctx, each)
	case javamethods.ResetCommand:
		return l.reset(ctx, c)
	default:
		return javamethods.ErrUnsupported
	}
}

// execLimit is the time after which the server interrupts a short command. Each takes less than a second.
const execLimit = 10 * time.Second

// exec carries out a command, and counts results that did not fit.
func (l *link) exec(ctx context.Context, command arthas.Command) ([]arthas.Result, error) {
	ctx, end := l.within(ctx)
	defer end()
	e, err := l.client.Exec(ctx, command, execLimit)
	if e.Incomplete {
		l.Count(CountExecOverflows, 1)
	}
	if err == nil && e.TimedOut {
		err = fmt.Errorf("the server did not end a command within %v", execLimit)
	}
	return e.Results, err
}

// identify asks for the process.
func (l *link) identify(ctx context.Context, each func(javamethods.Reply)) error {
	results, err := l.exec(ctx, arthas.SessionCommand{})
	if err != nil {
		return err
	}
	who := &javamethods.Sessions{}
	for _, result := range results {
		if state, is := result.(*arthas.SessionState); is {
			who.ProcessID = state.ProcessID
		}
	}
	if results, err = l.exec(ctx, arthas.JVMCommand{}); err != nil {
		return err
	}
	for _, result := range results {
		if properties, is := result.(*arthas.JVM); is {
			who.Host, who.Started = Machine(properties)
		}
	}
	each(who)
	return nil
}

// Machine returns the name of the program's host, and the time of its start as the server writes it.
func Machine(properties *arthas.JVM) (host, started string) {
	for i := range properties.Properties {
		switch p := &properties.Properties[i]; p.Name {
		case "MACHINE-NAME":
			_, host, _ = strings.Cut(text(p), "@")
		case "JVM-START-TIME":
			started = text(p)
		}
	}
	return host, started
}

// text returns the value of a property if it is a text.
func text(p *arthas.Property) (value string) {
	_ = json.Unmarshal([]byte(p.JSON), &value)
	return value
}

// begin stores the process, ends the sessions that are left of an earlier connection to it, and returns the classes that
// need a reset.
func (l *link) begin(ctx context.Context, who session.Identity) (owed []javamethods.Classes, err error) {
	l.mu.Lock()
	l.life++
	l.mu.Unlock()
	l.Store.Begin(ctx, remembered.Process{PID: who.PID, Host: who.Host, Started: who.Started})
	if err := l.endLeftovers(l.ctx); err != nil { // a shutdown has time for it
		return nil, err
	}
	for _, of := range l.Store.State().Owed {
		classes, err := classesOf(of)
		if err != nil { // it was no pattern of this version
			l.Store.Restored(ctx, of)
			continue
		}
		owed = append(owed, classes)
	}
	return owed, nil
}

func classesOf(stored remembered.Classes) (javamethods.Classes, error) {
	pattern, err := arthas.NewPattern(stored.Pattern)
	return javamethods.Classes{Pattern: pattern, Regexp: stored.Regexp}, err
}

// endLeftovers ends the stored sessions in which no command of the link runs.
func (l *link) endLeftovers(ctx context.Context) error {
	l.ending.Lock()
	defer l.ending.Unlock()
	for _, left := range l.Store.State().Sessions {
		if l.isRunning(left.ID) {
			continue
		}
		s, err := l.client.Join(ctx, left.ID)
		if err == nil {
			err = errors.Join(s.Interrupt(ctx), s.Close(ctx))
			l.Count(CountLeftovers, 1)
		}
		if err != nil && !errors.Is(err, arthas.ErrSessionNotFound) {
			return fmt.Errorf("ending a session of an earlier command: %w", err)
		}
		l.Store.Closed(ctx, left.ID)
	}
	return nil
}

func (l *link) isRunning(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.running[id]
}

// pollAnswered notes that the server has answered a poll.
func (l *link) pollAnswered(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answered = at
}

// answeredAfter reports whether the server has answered a poll after a time.
func (l *link) answeredAfter(t time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.answered.After(t)
}

// runningCommands returns the number of commands that run.
func (l *link) runningCommands() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.running)
}

// busyAgain returns a channel that is closed when a command has results after a rest.
func (l *link) busyAgain() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.busy
}

// wakeOthers ends the pauses of all idle commands.
func (l *link) wakeOthers() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.busy)
	l.busy = make(chan struct{})
}

// setRunning notes whether a command runs in a session.
func (l *link) setRunning(id string, runs bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if runs {
		l.running[id] = true
	} else {
		delete(l.running, id)
	}
}

// reset restores classes.
func (l *link) reset(ctx context.Context, c javamethods.ResetCommand) error {
	ctx, end := l.within(ctx)
	defer end()
	if err := l.endLeftovers(ctx); err != nil {
		return err
	}
	_, err := l.exec(ctx, arthas.ResetCommand{Class: c.Class, Regexp: c.Regexp})
	if err == nil {
		l.Store.Restored(ctx, remembered.Of(javamethods.Classes{Pattern: c.Class, Regexp: c.Regexp}))
	}
	return withReason(err)
}

// withReason adds to an error whether the server has refused the command.
func withReason(err error) error {
	if failed := (*arthas.CommandError)(nil); errors.As(err, &failed) {
		return fmt.Errorf("%w: %w", javamethods.ErrRefused, err)
	}
	return err
}

// isLost reports whether an error means that the server does not answer as Arthas.
func isLost(err error) bool {
	for _, lost := range []error{
		arthas.ErrNotListening, arthas.ErrClosed, arthas.ErrUnauthorized, arthas.ErrNotHTTP, arthas.ErrNotArthas, arthas.ErrTelnet, arthas.ErrGreys, arthas.ErrVersion,
	} {
		if errors.Is(err, lost) {
			return true
		}
	}
	return false
}

// errUnsent means that a command was not sent, because its session could not be opened.
var errUnsent = errors.New("the server opened no session")

// isUnsent reports whether the command of an error did not reach the server.
func isUnsent(err error) bool {
	return errors.Is(err, errUnsent) || errors.Is(err, arthas.ErrNotListening)
}

// Count is a count of a server.
type Count uint8

// The counts.
const (
	// CountResults counts results of tasks.
	CountResults Count = iota
	// CountUnbegun counts durations that are none, and CountTreesLeftOut trees without a duration.
	CountUnbegun
	CountTreesLeftOut
	// CountRecordsKept counts recorded calls that could not be deleted.
	CountRecordsKept
	// CountLost counts results that are known to be lost.
	CountLost
	// CountOverflows counts overflows of queues: certain ones, and CountFullQueues those that are possible.
	CountOverflows
	CountFullQueues
	// CountBrokenPages counts answers with results that did not arrive.
	CountBrokenPages
	// CountEvictions counts removals of queues by the server.
	CountEvictions
	// CountGaps counts the evictions that lost results.
	CountGaps
	// CountExecOverflows counts answers whose results did not fit.
	CountExecOverflows
	// CountUnhealthy counts jobs that the server interrupted because nothing polled.
	CountUnhealthy
	// CountLeftovers counts sessions of an earlier connection that were ended.
	CountLeftovers
	Counts
)
