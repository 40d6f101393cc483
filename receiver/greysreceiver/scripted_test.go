// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/javamethods/session"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/link"
)

// scripted is a server without sockets. It identifies itself and records the received commands; the test sends the
// replies.
type scripted struct {
	t        testing.TB
	protocol Protocol

	mu sync.Mutex
	// pid, session and version identify the server. refuse returns the error of a command; nil means that the test
	// answers it.
	pid     int64
	session int64 // the ID of the console's last session
	version string
	refuse  func(javamethods.Command) error
	// silent selects commands without any reply.
	silent func(javamethods.Command) bool
	// said are the received commands, and the ends of commands that the test answers.
	said []string
	// lost is closed when the current link is lost.
	lost chan struct{}
	late javamethods.Reply
	// slow delays ended commands until it is closed; nil means no delay.
	slow   chan struct{}
	gone   error
	links  int
	asked  chan *pending
	stats  session.Stats
	detail func(index int64) *javamethods.RecordDetail
}

// pending is a command that the test answers.
type pending struct {
	t       testing.TB
	command javamethods.Command
	answers chan javamethods.Reply
	handled chan struct{}
	end     chan error
	over    <-chan struct{}
}

// script replaces the server of a bed by a scripted one.
func script(t testing.TB, b *bed, protocol Protocol) *scripted {
	s := &scripted{t: t, protocol: protocol, pid: 4711, version: "1.7.6.6", asked: make(chan *pending, 100)}
	b.receiver.env.connect = func(context.Context, *link.Dialer, Protocol) (*session.Link, error) { return s.link() }
	return s
}

func (s *scripted) link() (*session.Link, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone != nil {
		return nil, s.gone
	}
	s.links++
	l := &session.Link{
		Asker: s, Dialect: link.GP, Close: func() {},
		Total: func() session.Stats {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.stats
		},
		Unsent:    func(err error) bool { return errors.Is(err, errUnsent) },
		IsForeign: link.IsForeign,
	}
	if s.protocol == ProtocolConsole {
		l.Dialect = link.Console
		return l, nil
	}
	lost := make(chan struct{})
	s.lost, l.Lost = lost, lost
	l.Why = func() error { return errors.New("the script ends the link") }
	return l, nil
}

var errUnsent = errors.New("it was not sent")

// Run implements asker.
func (s *scripted) Run(ctx context.Context, command javamethods.Command, each func(javamethods.Reply)) error {
	s.mu.Lock()
	text := describe(command)
	pid, version, refuse, lost, detail := s.pid, s.version, s.refuse, s.lost, s.detail
	gone, silent := s.gone, s.silent
	s.session++
	session := s.session
	s.said = append(s.said, text)
	s.mu.Unlock()
	if gone != nil {
		return gone
	}
	if silent != nil && silent(command) {
		<-ctx.Done()
		return ctx.Err()
	}
	if refuse != nil {
		if err := refuse(command); err != nil {
			return err
		}
	}
	switch command := command.(type) {
	case javamethods.VersionCommand:
		each(&javamethods.Version{Text: version})
		return nil
	case javamethods.SessionsCommand:
		if pid == 0 {
			return javamethods.ErrUnsupported
		}
		sessions := make([]javamethods.Session, 3)
		if s.protocol == ProtocolConsole {
			sessions = []javamethods.Session{{ID: session}}
		}
		each(&javamethods.Sessions{ProcessID: pid, Sessions: sessions})
		return nil
	case javamethods.ResetCommand:
		return ctx.Err()
	case javamethods.RecordDetailCommand:
		if detail == nil {
			return javamethods.ErrUnsupported
		}
		each(detail(command.Index))
		return nil
	}
	over := make(chan struct{})
	defer close(over)
	a := &pending{t: s.t, command: command, answers: make(chan javamethods.Reply), handled: make(chan struct{}), end: make(chan error, 1), over: over}
	s.asked <- a
	for {
		select {
		case <-ctx.Done():
			s.note("ended " + text)
			s.hold()
			return ctx.Err()
		case <-lost:
			s.last(ctx, each)
			return errors.New("the script ends the link")
		case err := <-a.end:
			return err
		case reply := <-a.answers:
			each(reply)
			a.handled <- struct{}{}
		}
	}
}

// last sends the reply that arrived before the loss of the link and is handled late.
func (s *scripted) last(ctx context.Context, each func(javamethods.Reply)) {
	s.mu.Lock()
	late := s.late
	s.late = nil
	s.mu.Unlock()
	if late == nil {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(100 * time.Millisecond):
	}
	each(late)
}

// hold blocks while slow is set.
func (s *scripted) hold() {
	s.mu.Lock()
	slow := s.slow
	s.mu.Unlock()
	if slow != nil {
		<-slow
	}
}

func (s *scripted) note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, text)
}

// newCommands returns the commands since the last call, without identity checks.
func (s *scripted) newCommands() (commands []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, text := range s.said {
		if !strings.HasPrefix(text, "Version") && !strings.HasPrefix(text, "Sessions") {
			commands = append(commands, text)
		}
	}
	s.said = nil
	return commands
}

// set changes the server.
func (s *scripted) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// hasReceived reports whether the server received a command since the last call of newCommands.
func (s *scripted) hasReceived(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.said, text)
}

// expectNothing waits for a moment for unexpected commands.
func (s *scripted) expectNothing() {
	s.t.Helper()
	select {
	case a := <-s.asked:
		require.Fail(s.t, "nothing may be asked", describe(a.command))
	case <-time.After(100 * time.Millisecond):
	}
}

// next returns the next command that the test answers.
func (s *scripted) next() *pending {
	s.t.Helper()
	select {
	case a := <-s.asked:
		return a
	case <-time.After(patience):
		require.Fail(s.t, "no command came")
		return nil
	}
}

// expect returns the next command, which must have this text.
func (s *scripted) expect(text string) *pending {
	s.t.Helper()
	a := s.next()
	require.Equal(s.t, text, describe(a.command))
	return a
}

// answer sends replies, and waits until each was handled.
func (a *pending) answer(replies ...javamethods.Reply) {
	a.t.Helper()
	for _, reply := range replies {
		select {
		case a.answers <- reply:
			<-a.handled
		case <-a.over:
			return // the command was ended
		case <-time.After(patience):
			require.Fail(a.t, "the answer was not handled")
		}
	}
}

// describe returns a readable text of a command.
func describe(command javamethods.Command) string {
	name := strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%T", command), "javamethods."), "Command")
	switch c := command.(type) {
	case javamethods.MonitorCommand:
		return fmt.Sprintf("%s %v %v %v", name, c.Class, c.Method, c.Cycle)
	case javamethods.TraceCommand:
		return fmt.Sprintf("%s %v %v %d", name, c.Class, c.Method, c.Limit)
	case javamethods.StackCommand:
		return fmt.Sprintf("%s %v %v %d", name, c.Class, c.Method, c.Limit)
	case javamethods.RecordCommand:
		return fmt.Sprintf("%s %v %v %d", name, c.Class, c.Method, c.Limit)
	case javamethods.ClassesCommand:
		return fmt.Sprintf("%s %v", name, c.Class)
	case javamethods.MethodsCommand:
		return fmt.Sprintf("%s %v %v", name, c.Class, c.Method)
	case javamethods.ResetCommand:
		return fmt.Sprintf("%s %v", name, c.Class)
	default:
		return name
	}
}

// monitor and some return settings of patterns.
func monitor(class, method string) MonitorConfig {
	return MonitorConfig{TargetConfig: TargetConfig{Class: class, Method: method}, Cycle: time.Second}
}

func some(class, method string, limit int) CallsConfig {
	return CallsConfig{TargetConfig: TargetConfig{Class: class, Method: method}, Limit: limit}
}

// row returns a row of a monitor's table.
func row(at int, class, method string, calls, failed int64, mean time.Duration) javamethods.MethodStatistics {
	return javamethods.MethodStatistics{
		Time: time.Date(2026, 11, 20, 9, 12, at, 0, time.UTC), Class: class, Method: method,
		Calls: calls, Succeeded: calls - failed, Failed: failed, Mean: mean, Min: mean / 2, Max: 2 * mean, HasMean: calls > 0, HasRange: calls > 0,
	}
}

func table(rows ...javamethods.MethodStatistics) *javamethods.Statistics {
	return &javamethods.Statistics{Methods: rows}
}

var affectedOne = &javamethods.Affected{Classes: 1, Methods: 2}

func callTree() *javamethods.Tree {
	return &javamethods.Tree{
		Thread: javamethods.Thread{Name: "main", ID: 1},
		Nodes:  []javamethods.Node{{End: 3 * time.Millisecond, Class: "demo.Shop", Method: "checkout"}},
	}
}

func patternOf(t testing.TB, text string) javamethods.Pattern {
	t.Helper()
	p, err := javamethods.NewPattern(text)
	require.NoError(t, err)
	return p
}
