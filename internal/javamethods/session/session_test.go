// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/javamethods/process"
	"github.com/callbraid/callbraid/internal/javamethods/task"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var receivedAt = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

var errLost = errors.New("the connection broke")

func patternOf(t testing.TB, text string) javamethods.Pattern {
	t.Helper()
	p, err := javamethods.NewPattern(text)
	require.NoError(t, err)
	return p
}

// peer is a server without sockets. It records the received commands. Monitors have no reply.
type peer struct {
	mu       sync.Mutex
	received []string
	// refuse returns the error of a command, or nil. silent means that resets have no reply.
	refuse func(javamethods.Command) error
	silent bool
}

// Run implements Asker.
func (p *peer) Run(ctx context.Context, command javamethods.Command, each func(javamethods.Reply)) error {
	p.mu.Lock()
	p.received = append(p.received, fmt.Sprintf("%T", command))
	refuse, silent := p.refuse, p.silent
	p.mu.Unlock()
	if refuse != nil {
		if err := refuse(command); err != nil {
			return err
		}
	}
	switch command.(type) {
	case javamethods.SessionsCommand:
		each(&javamethods.Sessions{ProcessID: 4711, Sessions: make([]javamethods.Session, 1)})
		return nil
	case javamethods.ResetCommand:
		if !silent {
			return ctx.Err()
		}
	}
	<-ctx.Done()
	return ctx.Err()
}

// noCounters counts nothing.
type noCounters struct{ Counters }

func (noCounters) Process(_, _ *process.Counts) {}
func (noCounters) CommandEnded(string)          {}
func (noCounters) Reset(error)                  {}
func (noCounters) Link(Stats)                   {}
func (noCounters) ForeignSessions(int64)        {}

// Dialects of Greys' protocols.
var (
	console = Dialect{Protocol: "console", ResetsAll: true, Aborts: true, MixesCalls: true, NumbersSessions: true}
	gp      = Dialect{Protocol: "gp", MaxAbandoned: 16, ListsRecords: true, Unconfirmed: true, CountsSessions: true}
)

// noEvents drops all results.
type noEvents struct{ Events }

func (noEvents) Problem(Problem, *task.Task, error) {}

// idleSession returns a session with monitors of classes that has sent nothing. Its clock stands still.
func idleSession(t *testing.T, p *peer, dialect Dialect, change func(*Settings), classes ...string) *Session {
	t.Helper()
	now := func() time.Time { return receivedAt }
	settings := &Settings{
		Reconnect: backoff.Config{InitialInterval: time.Millisecond, MaxInterval: 10 * time.Millisecond},
		Timeout:   5 * time.Second, AnswerTimeout: 30 * time.Second, StateInterval: time.Hour, MaxDetails: 1,
		IsForwarded: func(task.Kind) bool { return true }, OwnSessions: func() (int64, int64) { return 0, 0 },
		Counters: noCounters{}, Logger: zap.NewNop(), Now: now,
	}
	change(settings)
	var tasks []*task.Task
	for _, class := range classes {
		tasks = append(tasks, &task.Task{Kind: task.Monitor, Pattern: class + " *", Target: javamethods.Target{Class: patternOf(t, class), Method: patternOf(t, "*")}, Cycle: time.Second})
	}
	known := process.New(process.Settings{MaxMethods: 10, MaxInventory: 10, MaxTreeNodes: 10, Counters: noCounters{}, Logger: zap.NewNop(), Now: now})
	l := &Link{
		Asker: p, Dialect: dialect, Total: func() Stats { return Stats{} }, Close: func() {},
		Unsent: func(error) bool { return false }, IsForeign: func(error) bool { return false },
	}
	who := Identity{Protocol: dialect.Protocol, PID: 4711}
	s := New(l, NewWork(settings, NewTasks(tasks), known, noEvents{}, who), Inputs{})
	s.begin(t.Context(), 0)
	return s
}

func unchanged(*Settings) {}

// newRun returns a run of a job without sending its command.
func newRun(s *Session, j *job) *run {
	r := &run{job: j, work: s.Work, link: s.link}
	r.ctx, r.end = context.WithCancelCause(context.Background())
	return r
}

func statistics(calls int64) *javamethods.Statistics {
	return &javamethods.Statistics{Methods: []javamethods.MethodStatistics{{Class: "demo.Shop", Method: "checkout", Calls: calls}}}
}

// calls returns the sum of the counted calls of all methods.
func calls(s *Session) (n int64) {
	for _, m := range s.process.State().Methods {
		n += m.Calls
	}
	return n
}

// The server wrote them before it read that the run has ended.
func TestRepliesAfterTheEndOfARunCount(t *testing.T) {
	s := idleSession(t, &peer{}, console, unchanged, "demo.*")
	r := newRun(s, s.jobs[0])
	r.receive(statistics(1), false)
	r.end(errCleaning)
	r.receive(statistics(2), false)
	assert.EqualValues(t, 2, s.process.State().Replies)
	assert.EqualValues(t, 3, calls(s))
	s.halt()
}

// The server of a command that ran is gone. If it comes back in the same process, the classes are as the command left them.
func TestAConfirmedCommandOwesAResetAlthoughItsServerIsGone(t *testing.T) {
	for name, tt := range map[string]struct {
		confirmed bool
		owed      int
	}{"confirmed": {true, 1}, "not sent": {false, 0}} {
		t.Run(name, func(t *testing.T) {
			s := idleSession(t, &peer{}, console, unchanged, "demo.*")
			s.link.Unsent = func(error) bool { return true }
			r := newRun(s, s.jobs[0])
			if tt.confirmed {
				r.receive(&javamethods.Affected{Classes: 1, Methods: 2}, true)
			}
			r.err = errLost
			s.countRun(r, 1)
			s.runEnded(r)
			assert.Len(t, s.resets.owed, tt.owed)
			s.halt()
		})
	}
}

// The pauses grow only for commands that are lost soon, several times in a row.
func TestACommandThatRanLongIsSentAgainSoon(t *testing.T) {
	s := idleSession(t, &peer{}, console, func(c *Settings) {
		c.Reconnect = backoff.Config{InitialInterval: time.Second, MaxInterval: time.Hour}
	}, "demo.*")
	pause := func(ran time.Duration) time.Duration {
		j := s.jobs[0]
		r := newRun(s, j)
		r.err, r.began = errLost, receivedAt.Add(-ran)
		s.countRun(r, 1)
		s.runEnded(r)
		return j.due.Sub(receivedAt)
	}
	for range 20 {
		pause(time.Minute)
	}
	assert.GreaterOrEqual(t, pause(time.Hour), 30*time.Minute)
	assert.Less(t, pause(time.Hour+1), 2*time.Second)
	s.halt()
}

func TestAfterALossTheServerIdentifiesItselfBeforeOtherCommands(t *testing.T) {
	p := &peer{}
	s := idleSession(t, p, console, func(c *Settings) {
		c.Reconnect = backoff.Config{InitialInterval: time.Minute, MaxInterval: time.Hour}
	}, "demo.*")
	j := s.jobs[0]
	s.check.last = receivedAt
	r := newRun(s, j)
	r.err = errLost
	s.schedule(r, outcomeLost, receivedAt)
	j.due = receivedAt // its pause is shorter than the pause of the check
	s.resets.owe(j.Classes())
	step := func() {
		t.Helper()
		_, err := s.step(t.Context())
		require.NoError(t, err)
	}
	step()
	assert.Zero(t, s.running)
	assert.Nil(t, s.resets.round, "the process may be another one")
	s.check.due = receivedAt
	step()
	s.resetsEnded(<-s.reset)
	step()
	assert.Equal(t, 1, s.running)
	s.halt()
	assert.Equal(t, []string{"javamethods.SessionsCommand", "javamethods.ResetCommand", "javamethods.MonitorCommand"}, p.received[:3])
}

// The pauses grow only for consecutive failures.
func TestTheFirstFailedIdentityCheckIsRepeatedSoon(t *testing.T) {
	unclear := errors.New("expected a number as the session's JAVA_PID")
	var fails error
	s := idleSession(t, &peer{refuse: func(javamethods.Command) error { return fails }}, console, func(c *Settings) {
		c.Reconnect = backoff.Config{InitialInterval: time.Second, MaxInterval: time.Hour}
	}, "demo.*")
	for range 20 {
		for _, fails = range []error{unclear, unclear, nil} {
			require.NoError(t, s.checkIdentity(t.Context()), "the server counts as lost after three failures")
		}
	}
	fails = unclear
	require.NoError(t, s.checkIdentity(t.Context()))
	assert.Less(t, s.check.due.Sub(receivedAt), 2*time.Second)
	// Resets behave the same way.
	reset := func() {
		s.resets.owe(javamethods.Classes{})
		s.resets.due = receivedAt
		s.startResets(receivedAt)
		s.resetsEnded(<-s.reset)
	}
	s.check.doubted = false
	for range 20 {
		for _, fails = range []error{unclear, nil} {
			reset()
		}
	}
	fails = unclear
	reset()
	assert.Less(t, s.resets.due.Sub(receivedAt), 2*time.Second)
	s.halt()
}

// A request for the identity costs the program more than the poll of a command, which shows the same.
func TestNoIdentityIsRequestedWhileRepliesShowIt(t *testing.T) {
	p := &peer{}
	s := idleSession(t, p, console, unchanged, "demo.*")
	replied := receivedAt.Add(time.Second)
	s.link.IsSame = func(after time.Time) bool { return replied.After(after) }
	s.check.last = receivedAt
	require.NoError(t, s.checkIdentity(t.Context()))
	assert.Empty(t, p.received)
	assert.Equal(t, receivedAt.Add(s.StateInterval), s.check.due)
	s.check.doubt()
	require.NoError(t, s.checkIdentity(t.Context()))
	assert.Len(t, p.received, 1, "after a lost command the reply may be of the process before")
	replied = receivedAt
	require.NoError(t, s.checkIdentity(t.Context()))
	assert.Len(t, p.received, 2, "no reply since the last check")
	s.halt()
}

// Together they have the time limit of a single reset.
func TestManyUnansweredResetsEndAfterOneTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := idleSession(t, &peer{silent: true}, gp, unchanged, "demo.*")
		const many = 3 * resetsAtOnce
		for i := range many {
			s.resets.owe(javamethods.Classes{Pattern: patternOf(t, fmt.Sprintf("demo.Shop%d", i))})
		}
		began := time.Now()
		s.startResets(receivedAt)
		s.resetsEnded(<-s.reset)
		assert.Equal(t, s.ControlTimeout(), time.Since(began))
		assert.Len(t, s.resets.owed, many, "they stay owed")
		assert.True(t, s.resets.due.After(receivedAt))
		s.halt()
	})
}

func TestAResetRemovesAllLayers(t *testing.T) {
	s := idleSession(t, &peer{}, gp, unchanged, "demo.*")
	s.resets.owe(s.jobs[0].Classes())
	s.resets.layers = 3
	s.startResets(receivedAt)
	s.resetsEnded(<-s.reset)
	assert.Zero(t, s.resets.layers)
	assert.False(t, s.HasLeftovers())
	s.halt()
}

func TestWithOneLayerNoCommandEndsForAReset(t *testing.T) {
	s := idleSession(t, &peer{}, Dialect{Aborts: true, OneLayer: true}, unchanged, "demo.*")
	s.resets.owe(s.jobs[0].Classes())
	s.resets.overload(len(s.jobs))
	s.start(s.jobs[0])
	s.startResets(receivedAt)
	assert.False(t, s.resets.cleaning)
	assert.Nil(t, s.resets.round, "the command may have the classes")
	require.NoError(t, s.jobs[0].run.ctx.Err())
	s.halt()
}

// The server counts results for the limit that got lost. It may have changed classes although no method matches.
func TestErrorsThatAreNoFailures(t *testing.T) {
	for name, tt := range map[string]struct {
		err   error
		want  outcome
		state jobState
		owed  int
	}{
		"the server's limit":  {fmt.Errorf("%w: 100", javamethods.ErrLimit), outcomeEnded, jobOver, 1},
		"no matching method":  {fmt.Errorf("%w: demo.*", javamethods.ErrUnmatched), outcomeUnmatched, jobDue, 1},
		"an early end":        {errLost, outcomeLost, jobDue, 1},
		"not sent to servers": {errUnsent, outcomeLost, jobDue, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := idleSession(t, &peer{}, Dialect{Aborts: true, OneLayer: true}, unchanged, "demo.*")
			s.link.Unsent = func(err error) bool { return errors.Is(err, errUnsent) }
			r := newRun(s, s.jobs[0])
			r.err = tt.err
			assert.Equal(t, tt.want, r.outcome())
			s.countRun(r, 1)
			s.runEnded(r)
			assert.Equal(t, tt.state, s.jobs[0].state)
			assert.Len(t, s.resets.owed, tt.owed)
			s.halt()
		})
	}
}

var errUnsent = errors.New("it was not sent")

// The commands were ended for a reset that has no reply.
func TestCommandsDoNotWaitForResetsWithoutAReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := idleSession(t, &peer{silent: true}, console, unchanged, "demo.*")
		s.resets.owe(javamethods.Classes{Pattern: patternOf(t, "demo.Shop")})
		s.resets.overload(len(s.jobs))
		s.startResets(receivedAt)
		assert.True(t, s.resets.cleaning)
		s.resetsEnded(<-s.reset)
		assert.False(t, s.resets.cleaning)
		assert.Zero(t, s.resets.layers, "otherwise they would end again immediately")
		assert.Len(t, s.resets.owed, 1, "the reset stays owed")
		s.halt()
	})
}

func TestCancelledResetsAreDropped(t *testing.T) {
	s := idleSession(t, &peer{}, gp, unchanged, "demo.*")
	defer s.halt()
	ctx, cancel := context.WithCancel(t.Context())
	for range 100 {
		s.carryOut(NewOrder(ctx, Reset), s.link)
	}
	assert.Len(t, s.resets.orders, 100)
	cancel()
	o := NewOrder(t.Context(), Reset)
	s.carryOut(o, s.link)
	assert.Equal(t, []*Order{o}, s.resets.orders)
}

// locked is a context that fails the test if it is used without the lock.
type locked struct {
	context.Context
	t  *testing.T
	mu *sync.Mutex
}

func (l locked) expectLock(what string) {
	l.t.Helper()
	if l.mu.TryLock() {
		l.mu.Unlock()
		assert.Fail(l.t, what)
	}
}

func (l locked) Err() error {
	l.expectLock("an order may end the run before its reply is handled")
	return l.Context.Err()
}

// The methods may belong to another monitor when the late row arrives.
func TestALateRowOfAnEndedMonitorDoesNotReclaimItsMethods(t *testing.T) {
	s := idleSession(t, &peer{}, console, unchanged, "demo.*", "demo.Shop")
	j := s.jobs[0]
	ctx, end := context.WithCancelCause(t.Context())
	of := locked{ctx, t, &s.mu}
	r := &run{job: j, work: s.Work, link: s.link, ctx: of, end: func(why error) {
		of.expectLock("a row may be counted when other monitors may have the methods")
		end(why)
	}}
	j.run, j.state = r, jobRunning
	r.receive(statistics(2), false)
	s.carryOut(&Order{Action: End, Number: j.Number, result: make(chan Result, 1)}, s.link)
	r.receive(statistics(3), false)
	assert.EqualValues(t, 2, calls(s))
	other := newRun(s, s.jobs[1])
	later := statistics(4)
	later.Methods[0].Time = receivedAt // a cycle that began after the monitor's end
	other.receive(later, false)
	assert.EqualValues(t, 6, calls(s), "the other monitor counts the method now")
	j.run = nil
	s.halt()
}

func TestRecordedCallsAreTracedIfACommandHasTheirTree(t *testing.T) {
	target := func(class, method string) javamethods.Target {
		of, err := javamethods.NewPattern(class)
		require.NoError(t, err)
		named, err := javamethods.NewPattern(method)
		require.NoError(t, err)
		return javamethods.Target{Class: of, Method: named}
	}
	tracing := func(target javamethods.Target) *run {
		return &run{job: &job{Task: &task.Task{Kind: task.Trace, Target: target, Limit: 2}}, affected: true}
	}
	simple := &javamethods.Record{Class: "Shop", Method: "pay", IsSimple: true}
	full := &javamethods.Record{Class: "com.example.Shop", Method: "pay"}
	regexp := target("com.*", "pay")
	regexp.Regexp = true
	begun, ended := tracing(target("com.*", "*")), tracing(target("com.*", "*"))
	begun.affected, ended.replies = false, 2
	parts := func(of ...*part) *run {
		r := tracing(target("com.*", "*"))
		r.parts = of
		return r
	}
	pay := func(timed bool) *part {
		return &part{classes: []string{"com.example.Shop"}, method: "pay", timed: timed}
	}
	for name, tt := range map[string]struct {
		run    *run
		record *javamethods.Record
		want   bool
	}{
		"a command of the method":                     {parts(pay(true)), full, true},
		"a command of the method, by the simple name": {parts(pay(true)), simple, true},
		"a command of another method":                 {parts(&part{classes: []string{"com.example.Shop"}, method: "price", timed: true}), full, false},
		"a command without trees, or a refused one":   {parts(pay(false)), full, false},
		"the method":              {tracing(target("com.example.Shop", "pay")), full, true},
		"a pattern of the method": {tracing(target("com.*", "p*")), full, true},
		"another method":          {tracing(target("com.*", "price")), full, false},
		"another class":           {tracing(target("com.example.Pay", "*")), full, false},
		"a pattern of the class, by the simple name": {tracing(target("com.*", "*")), simple, true},
		"another class by the simple name":           {tracing(target("com.example.Workshop", "*")), simple, false},
		"a regular expression":                       {tracing(regexp), full, false},
		"a trace that has not begun":                 {begun, full, false},
		"a trace whose limit is reached":             {ended, full, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := new(Work)
			assert.False(t, w.isTraced(tt.record), "without a run")
			w.jobs = []*job{tt.run.job}
			assert.False(t, w.isTraced(tt.record), "after the run")
			tt.run.job.run = tt.run
			assert.Equal(t, tt.want, w.isTraced(tt.record))
		})
	}
}

func TestSessionNumbersShowSessionsOfOtherClients(t *testing.T) {
	var sessions foreignSessions
	for _, tt := range []struct {
		name                 string
		session, least, most int64
		others               int64
	}{
		{"the first number is the start", 41, 1, 2, 0},
		{"the next connection has the next number", 42, 2, 3, 0},
		{"one of our commands connects meanwhile, before it", 44, 3, 5, 0},
		{"one of our commands connects meanwhile, after it", 45, 5, 7, 0},
		{"the next comparison counts it", 47, 7, 8, 0},
		{"two others", 50, 8, 9, 2},
		{"none since", 51, 9, 10, 0},
	} {
		t.Run(tt.name, func(t *testing.T) { assert.Equal(t, tt.others, sessions.compare(tt.session, tt.least, tt.most)) })
	}
}

func TestAnotherIdentityIsAnotherProcess(t *testing.T) {
	was := Identity{Protocol: console.Protocol, PID: 7, Version: "1.7.6.6"}
	for name, tt := range map[string]struct {
		before, now Identity
		want        bool
	}{
		"the same":                  {was, was, false},
		"another ID":                {was, Identity{Protocol: console.Protocol, PID: 8, Version: "1.7.6.6"}, true},
		"another version":           {was, Identity{Protocol: console.Protocol, PID: 7, Version: "1.7.6.7"}, true},
		"another protocol":          {was, Identity{Protocol: gp.Protocol, PID: 7, Version: "1.7.6.6"}, true},
		"no ID now":                 {was, Identity{Protocol: console.Protocol, Version: "1.7.6.6"}, false},
		"no version now":            {was, Identity{Protocol: console.Protocol, PID: 7}, false},
		"no ID before":              {Identity{Protocol: console.Protocol, Version: "1.7.6.6"}, was, false},
		"no version before":         {Identity{Protocol: console.Protocol, PID: 7}, was, false},
		"another host":              {Identity{PID: 1, Host: "a"}, Identity{PID: 1, Host: "b"}, true},
		"another start":             {Identity{PID: 1, Started: "10:00"}, Identity{PID: 1, Started: "11:00"}, true},
		"no start now":              {Identity{PID: 1, Started: "10:00"}, Identity{PID: 1}, false},
		"no ID and another version": {was, Identity{Protocol: console.Protocol, Version: "1"}, true},
	} {
		assert.Equal(t, tt.want, tt.before.IsOther(tt.now), name)
	}
}

func TestGeneratedClassesAndMethodsAreRecognised(t *testing.T) {
	for class, generated := range map[string]bool{
		"com.example.Shop": false, "com.example.Shop$Inner": false,
		"com.example.Shop$$Lambda$14/0x0000000800c03000": true, "com.example.Shop$$EnhancerBySpringCGLIB$$1f": true, "com.example.$Proxy12": true,
	} {
		assert.Equal(t, generated, isGenerated(class), class)
	}
	for method, ordinary := range map[string]bool{
		"checkout": true, "get$price": true, "<init>": false, "<clinit>": false, "lambda$tax$0": false, "access$000": false, "$values": false,
	} {
		assert.Equal(t, ordinary, isOrdinary(method), method)
	}
}
