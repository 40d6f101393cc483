// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/arthas"
	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/javamethods/session"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/remembered"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/task"
)

// Server is one Arthas server. [Server.Run] owns it.
type Server struct {
	Settings
	process Process
	begun   bool
	// jobs has the state of each task in the life of the process.
	jobs []*job

	// instrumenting guards running, and every start of a command and every reset.
	instrumenting sync.Mutex
	// running has the classes of the running jobs.
	running map[*job]javamethods.Classes
}

// New returns a server.
func New(settings Settings) *Server {
	return &Server{Settings: settings, running: map[*job]javamethods.Classes{}}
}

// Run runs the tasks until ctx ends, over all losses of the server.
func (s *Server) Run(ctx context.Context) {
	pauses := backoff.New(s.Reconnect)
	for {
		began := s.Now()
		err := s.serve(ctx)
		if ctx.Err() != nil {
			err = session.ErrShutdown
		}
		s.Output.Lost(err)
		if ctx.Err() != nil {
			s.warnLeft()
			return
		}
		s.Output.Count(CountFailed, 1)
		if s.Now().Sub(began) > s.Reconnect.MaxInterval {
			pauses.Reset()
		}
		if !sleep(ctx, pauses.Pause()) {
			s.warnLeft()
			return
		}
	}
}

// sleep waits, and reports false if ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Errors that end a connection.
var (
	errOther  = errors.New("another process answers: the program was started again")
	errBroken = errors.New("several answers in succession could not be read")
)

// serve runs the tasks until the server is lost or ctx ends. The error is never nil.
func (s *Server) serve(ctx context.Context) error {
	process, err := s.identify(ctx)
	if err != nil {
		return err
	}
	s.begin(ctx, process)
	if err := s.restore(ctx); err != nil {
		return err
	}
	running, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	var all sync.WaitGroup
	for _, j := range s.jobs {
		all.Go(func() { j.run(running, lose) })
	}
	all.Go(func() { s.watch(running, s.StateInterval, s.checkProcess, lose) })
	if s.JVMInterval > 0 {
		all.Go(func() { s.watch(running, s.JVMInterval, s.reportJVM, lose) })
	}
	<-running.Done()
	all.Wait()
	return context.Cause(running)
}

// execLimit is the time after which the server interrupts a command of the receiver. Each takes less than a second.
const execLimit = 10 * time.Second

// exec carries out a command, and counts results that did not fit.
func (s *Server) exec(ctx context.Context, command arthas.Command) ([]arthas.Result, error) {
	e, err := s.Client.Exec(ctx, command, execLimit)
	if e.Incomplete {
		s.Output.Count(CountExecOverflows, 1)
	}
	if err == nil && e.TimedOut {
		err = fmt.Errorf("the server did not end a command within %v", execLimit)
	}
	return e.Results, err
}

// identify asks for the version and the process.
func (s *Server) identify(ctx context.Context) (Process, error) {
	version, err := s.Client.Identify(ctx)
	if err != nil {
		return Process{}, err
	}
	p := Process{Version: version}
	results, err := s.exec(ctx, arthas.SessionCommand{})
	if err != nil {
		return p, err
	}
	for _, result := range results {
		if state, is := result.(*arthas.SessionState); is {
			p.PID = state.ProcessID
		}
	}
	properties, err := s.properties(ctx)
	p.Host, p.Started = machine(properties)
	return p, err
}

// properties asks for the properties of the JVM. Without an answer they are empty.
func (s *Server) properties(ctx context.Context) (*arthas.JVM, error) {
	results, err := s.exec(ctx, arthas.JVMCommand{})
	for _, result := range results {
		if properties, is := result.(*arthas.JVM); is {
			return properties, err
		}
	}
	return &arthas.JVM{}, err
}

// machine returns the name of the program's host, and the time of its start as the server writes it.
func machine(properties *arthas.JVM) (host, started string) {
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

// begin continues a process, or begins a new one.
func (s *Server) begin(ctx context.Context, process Process) {
	isNew := !s.begun || s.process.Process != process.Process
	s.process, s.begun = process, true
	s.Store.Begin(ctx, process.Process)
	if isNew {
		s.jobs = nil
		for _, t := range s.Tasks {
			s.jobs = append(s.jobs, &job{server: s, task: t})
		}
	}
	s.Output.Began(process, isNew)
}

// restore ends the sessions that are left of an earlier connection, and resets their classes. No job runs.
func (s *Server) restore(ctx context.Context) error {
	for _, left := range s.Store.State().Sessions {
		session, err := s.Client.Join(ctx, left.ID)
		if err == nil {
			err = errors.Join(session.Interrupt(ctx), session.Close(ctx))
			s.Output.Count(CountLeftovers, 1)
		}
		if err != nil && !errors.Is(err, arthas.ErrSessionNotFound) {
			return fmt.Errorf("ending a session of an earlier connection: %w", err)
		}
		s.Store.Closed(ctx, left.ID)
	}
	s.instrumenting.Lock()
	defer s.instrumenting.Unlock()
	return s.reset(ctx)
}

// reset restores the classes that no running job may use. The caller holds the lock.
func (s *Server) reset(ctx context.Context) (failed error) {
	for _, owed := range s.Store.State().Owed {
		pattern, err := arthas.NewPattern(owed.Pattern)
		if err != nil { // it was no pattern of this version
			s.Store.Restored(ctx, owed)
			continue
		}
		classes := javamethods.Classes{Pattern: pattern, Regexp: owed.Regexp}
		if s.mayRun(classes) {
			continue
		}
		if _, err := s.exec(ctx, arthas.ResetCommand{Class: pattern, Regexp: owed.Regexp}); err != nil {
			s.Output.Count(CountFailedResets, 1)
			failed = errors.Join(failed, fmt.Errorf("reset of %s: %w", owed.Pattern, err))
			continue
		}
		s.Output.Count(CountResets, 1)
		s.Store.Restored(ctx, owed)
	}
	return failed
}

// mayRun reports whether a running job may match one of the classes.
func (s *Server) mayRun(classes javamethods.Classes) bool {
	for _, of := range s.running {
		if of.MayOverlap(classes) {
			return true
		}
	}
	return false
}

// start starts the command of a job. From then on, no reset restores its classes.
func (s *Server) start(ctx context.Context, j *job, session *arthas.Session, command arthas.Command) (*arthas.Job, error) {
	s.instrumenting.Lock()
	defer s.instrumenting.Unlock()
	s.running[j] = j.task.Classes()
	s.Store.Opened(ctx, session.ID(), remembered.Of(j.task.Classes()))
	return session.Start(ctx, command)
}

// ended handles the end of a job. closed: its session is closed too.
func (s *Server) ended(ctx context.Context, j *job, session *arthas.Session, closed bool) {
	s.instrumenting.Lock()
	defer s.instrumenting.Unlock()
	delete(s.running, j)
	if j.task.Kind == task.Monitor {
		s.Output.Released(j.task)
	}
	if !closed {
		return // restore ends the session, and resets the classes, when the server answers again
	}
	s.Store.Closed(ctx, session.ID())
	_ = s.reset(ctx) // failed resets stay owed
}

// warnLeft logs what a shutdown did not restore.
func (s *Server) warnLeft() {
	left := s.Store.State()
	if len(left.Sessions)+len(left.Owed) == 0 {
		return
	}
	patterns := map[string]bool{}
	for _, session := range left.Sessions {
		patterns[session.Classes.Pattern] = true
	}
	for _, classes := range left.Owed {
		patterns[classes.Pattern] = true
	}
	s.Logger.Warn("Classes stay instrumented, because shutdown_timeout is too short or the server did not answer: reset them by hand, or start the collector again with storage",
		zap.Strings("patterns", slices.Sorted(maps.Keys(patterns))), zap.Int("open_sessions", len(left.Sessions)))
}

// watch makes a request now and after each interval, until the server is lost. If every command has reached its limit, no
// other request notices that the program was started again.
func (s *Server) watch(ctx context.Context, interval time.Duration, request func(context.Context) error, lose context.CancelCauseFunc) {
	broken := 0
	for {
		err := request(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case isLost(err) || broken >= maxBroken:
			lose(err)
			return
		case err != nil:
			broken++
			s.Output.Count(CountBrokenPages, 1)
		default:
			broken = 0
		}
		if !sleep(ctx, interval) {
			return
		}
	}
}

// checkProcess identifies the process again. The error is errOther if it is another one.
func (s *Server) checkProcess(ctx context.Context) error {
	process, err := s.identify(ctx)
	if err == nil && process.Process != s.process.Process {
		err = errOther
	}
	return err
}

// dashboardInterval is how long the server needs to end the command after its only result. It blocks a thread meanwhile.
const dashboardInterval = 100 * time.Millisecond

// reportJVM asks for the state of the JVM, and forwards it. The error is errOther if another process answers.
func (s *Server) reportJVM(ctx context.Context) error {
	properties, err := s.properties(ctx)
	if err != nil {
		return err
	}
	if host, started := machine(properties); host != s.process.Host || started != s.process.Started {
		return errOther
	}
	results, err := s.exec(ctx, arthas.DashboardCommand{Interval: dashboardInterval, Limit: 1})
	if err != nil {
		return err
	}
	var dashboard *arthas.Dashboard
	for _, result := range results {
		if of, is := result.(*arthas.Dashboard); is {
			dashboard = of
		}
	}
	s.Output.JVM(dashboard, properties)
	return nil
}

// maxBroken is the number of failed requests in succession after which the server is identified again.
const maxBroken = 5

// isLost reports whether an error means that the server does not answer as Arthas, or is attached to another process.
func isLost(err error) bool {
	for _, lost := range []error{
		errOther, arthas.ErrNotListening, arthas.ErrClosed, arthas.ErrUnauthorized, arthas.ErrNotHTTP, arthas.ErrNotArthas, arthas.ErrSessionNotFound,
	} {
		if errors.Is(err, lost) {
			return true
		}
	}
	return false
}
