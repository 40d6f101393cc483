// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/greys/gp"
	"github.com/callbraid/callbraid/internal/javamethods"
)

// byPattern returns pending commands by the pattern of their class.
func (s *scripted) byPattern(n int) map[string]*pending {
	s.t.Helper()
	all := map[string]*pending{}
	for range n {
		a := s.next()
		switch c := a.command.(type) {
		case javamethods.MonitorCommand:
			all[c.Class.String()] = a
		case javamethods.StackCommand:
			all[c.Class.String()] = a
		case javamethods.TraceCommand:
			all[c.Class.String()] = a
		}
	}
	return all
}

func resets(commands []string) (resets []string) {
	for _, text := range commands {
		if len(text) > 6 && text[:6] == "Reset " {
			resets = append(resets, text)
		}
	}
	slices.Sort(resets)
	return resets
}

func TestByGPAResetIsSentWhenNoRunningCommandOverlaps(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.Monitors = []MonitorConfig{monitor("demo.Shop*", "*")}
		c.Stacks = []CallsConfig{some("demo.Pay", "*", 1), some("demo.*Front", "*", 1)}
	})
	s := script(t, b, ProtocolGP)
	b.start()
	all := s.byPattern(3)
	stack := &javamethods.CallStack{Frames: []javamethods.Frame{{Class: "demo.Pay", Method: "charge"}}}
	for _, class := range []string{"demo.Pay", "demo.*Front"} {
		all[class].answer(affectedOne, stack)
		all[class].end <- nil
	}
	b.Await("the resets", func() bool { return b.point("resets{outcome=done}") == 1 && b.point("commands{outcome=ended}") == 2 })
	assert.Equal(t, []string{"Reset demo.Pay"}, resets(s.newCommands()), "the monitor may count demo.ShopFront")
	b.Shutdown()
	commands := s.newCommands()
	assert.Equal(t, "ended Monitor demo.Shop* * 1s", commands[0])
	assert.Equal(t, []string{"Reset demo.*Front", "Reset demo.Shop*"}, resets(commands))
}

// A reset of the console affects all classes.
func TestOnTheConsoleAResetIsSentWhenNoCommandRuns(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.Monitors = []MonitorConfig{monitor("demo.Shop", "*")}
		c.Stacks = []CallsConfig{some("other.Pay", "*", 1)}
	})
	s := script(t, b, ProtocolConsole)
	b.start()
	all := s.byPattern(2)
	all["other.Pay"].answer(affectedOne, &javamethods.CallStack{Frames: []javamethods.Frame{{Class: "other.Pay", Method: "charge"}}})
	all["other.Pay"].end <- nil
	b.awaitLogged("A command has reached its limit")
	assert.Empty(t, resets(s.newCommands()))
	// The monitor is lost: a reset is sent before the monitor is sent again.
	all["demo.Shop"].answer(affectedOne)
	all["demo.Shop"].end <- errors.New("the connection broke")
	s.expect("Monitor demo.Shop * 1s")
	commands := s.newCommands()
	assert.Len(t, resets(commands), 1, "one reset affects all classes")
	assert.Equal(t, "Monitor demo.Shop * 1s", commands[len(commands)-1])
	b.Shutdown()
	assert.Equal(t, []string{"Reset demo.Shop"}, resets(s.newCommands()))
}

func TestAFailedResetIsSentAgain(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Stacks = []CallsConfig{some("demo.Pay", "*", 1)} })
	s := script(t, b, ProtocolConsole)
	fails := []error{errors.New("the connection broke"), javamethods.ErrRefused}
	s.refuse = func(c javamethods.Command) (err error) {
		if _, is := c.(javamethods.ResetCommand); is && len(fails) > 0 {
			err, fails = fails[0], fails[1:]
		}
		return err
	}
	b.start()
	a := s.next()
	a.answer(affectedOne, &javamethods.CallStack{Frames: []javamethods.Frame{{Class: "demo.Pay", Method: "charge"}}})
	a.end <- nil
	b.Await("the reset", func() bool { return b.point("resets{outcome=done}") == 1 })
	assert.EqualValues(t, 2, b.point("resets{outcome=failed}"))
	b.Shutdown()
	assert.EqualValues(t, 1, b.point("resets{outcome=done}"), "the reset is no longer owed")
	assert.False(t, b.receiver.servers[0].HasLeftovers(), "the classes are restored")
}

func TestAnUnsupportedResetIsNotRepeated(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Stacks = []CallsConfig{some("demo.Pay", "*", 1)} })
	s := script(t, b, ProtocolConsole)
	s.refuse = func(c javamethods.Command) error {
		if _, is := c.(javamethods.ResetCommand); is {
			return javamethods.ErrUnsupported
		}
		return nil
	}
	b.start()
	a := s.next()
	a.answer(affectedOne, &javamethods.CallStack{Frames: []javamethods.Frame{{Class: "demo.Pay", Method: "charge"}}})
	a.end <- nil
	b.awaitLogged("A reset failed")
	b.Shutdown()
	assert.EqualValues(t, 1, b.point("resets{outcome=failed}"))
}

func TestUnsentAndUnmatchedCommandsNeedNoReset(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Stacks = []CallsConfig{some("demo.Pay", "*", 1)} })
	s := script(t, b, ProtocolConsole)
	b.start()
	s.next().end <- errUnsent
	s.next().answer(&javamethods.Affected{})
	s.next().end <- errUnsent
	s.next().end <- javamethods.ErrUnsupported
	b.awaitLogged("does not support")
	b.Shutdown()
	assert.Empty(t, resets(s.newCommands()))
}

// A command that is lost often, beside a running one, adds layers of instrumentation.
func TestManyLayersCauseAReset(t *testing.T) {
	for name, refuses := range map[string]error{"the reset succeeds": nil, "the server refuses the reset": javamethods.ErrRefused} {
		t.Run(name, func(t *testing.T) { resetLayers(t, refuses) })
	}
}

func resetLayers(t *testing.T, refuses error) {
	b := newBed(t, func(c *Config) {
		c.Monitors = []MonitorConfig{monitor("demo.Shop", "*")}
		c.Stacks = []CallsConfig{some("demo.Pay", "*", 0)}
	})
	s := script(t, b, ProtocolConsole)
	s.refuse = func(c javamethods.Command) error {
		if _, is := c.(javamethods.ResetCommand); is {
			return refuses
		}
		return nil
	}
	b.start()
	all := s.byPattern(2)
	all["demo.Pay"].answer(affectedOne)
	all["demo.Pay"].end <- errors.New("the connection broke")
	s.set(func() { s.slow = make(chan struct{}) })
	lost := 1
	for ; !s.hasReceived("ended Monitor demo.Shop * 1s"); lost++ {
		select {
		case again := <-s.asked:
			again.end <- errors.New("the connection broke")
		case <-time.After(10 * time.Millisecond):
		}
		if lost > 100*manyLayers {
			t.Fatal("no reset is sent")
		}
	}
	s.expectNothing()
	close(s.slow)
	<-all["demo.Shop"].over
	s.next()
	commands := s.newCommands()
	reset := resets(commands)
	require.NotEmpty(t, reset)
	assert.True(t, len(reset) == 1 || refuses != nil, "one reset affects all classes; a refused one is sent again")
	assert.Less(t, slices.Index(commands, "ended Monitor demo.Shop * 1s"), slices.Index(commands, reset[0]))
	assert.Greater(t, lost, manyLayers)
}

// unreachable loses the link with its commands, and refuses new connections: the receiver then pauses.
func (s *scripted) unreachable(b *bed, a *pending) {
	s.t.Helper()
	s.set(func() {
		s.gone = fmt.Errorf("connection refused: %w", errUnsent)
		if s.protocol == ProtocolGP {
			close(s.lost)
		}
	})
	if s.protocol == ProtocolConsole {
		a.end <- errors.New("the connection broke")
	}
	b.awaitLogged("The server cannot be reached, or was lost")
	s.newCommands()
}

// pausing returns a receiver whose only server is unreachable and has instrumented classes.
func pausing(t *testing.T, protocol Protocol) (*bed, *scripted) {
	t.Helper()
	b := newBed(t, func(c *Config) {
		c.Monitors = []MonitorConfig{monitor("demo.Shop", "*")}
		c.Reconnect = RetryConfig{InitialInterval: time.Hour, MaxInterval: time.Hour}
	})
	s := script(t, b, protocol)
	b.start()
	a := s.next()
	a.answer(affectedOne)
	s.unreachable(b, a)
	return b, s
}

// The receiver also restores a server without a connection.
func TestAShutdownInAPauseSendsTheResets(t *testing.T) {
	for _, protocol := range []Protocol{ProtocolConsole, ProtocolGP} {
		t.Run(string(protocol), func(t *testing.T) {
			b, s := pausing(t, protocol)
			s.set(func() { s.gone = nil })
			b.Shutdown()
			assert.Len(t, resets(s.newCommands()), 1)
			assert.EqualValues(t, 1, b.point("resets{outcome=done}"))
			assert.Zero(t, b.Log.FilterMessageSnippet("No reset was possible").Len())
		})
	}
}

func TestAShutdownInAPauseLogsFailedResets(t *testing.T) {
	b, _ := pausing(t, ProtocolGP)
	b.Shutdown()
	line := b.awaitLogged("No reset was possible").ContextMap()
	assert.Equal(t, []any{"demo.Shop"}, line["patterns"])
	assert.Contains(t, line["error"], "connection refused")
	assert.EqualValues(t, 1, b.point("resets{outcome=failed}"))
}

// A reset must not affect another process.
func TestAShutdownInAPauseDoesNotResetAnotherProcess(t *testing.T) {
	b, s := pausing(t, ProtocolGP)
	s.set(func() { s.gone, s.pid = nil, s.pid+1 })
	b.Shutdown()
	assert.Empty(t, resets(s.newCommands()))
}

// On the console one reset is for all patterns, and its failure counts for all.
func TestOnTheConsoleOneResetCountsForAllPatterns(t *testing.T) {
	b := newBed(t, func(c *Config) {
		for _, class := range []string{"demo.A", "demo.B", "demo.C"} {
			c.Stacks = append(c.Stacks, some(class, "*", 0))
		}
	})
	s := script(t, b, ProtocolConsole)
	b.start()
	for range 3 {
		s.next().answer(affectedOne)
	}
	s.set(func() {
		s.refuse = func(javamethods.Command) error { return errors.New("the connection broke") }
	})
	b.Shutdown()
	assert.Len(t, resets(s.newCommands()), 1)
	assert.EqualValues(t, 1, b.point("resets{outcome=failed}"))
	assert.ElementsMatch(t, []any{"demo.A", "demo.B", "demo.C"}, b.awaitLogged("No reset was possible").ContextMap()["patterns"])
}

// The shutdown can come during the reconnection after a lost link.
func TestAShutdownDuringAReconnectionSendsTheResets(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Monitors = []MonitorConfig{monitor("demo.Shop", "*")} })
	s := script(t, b, ProtocolGP)
	b.start()
	s.next().answer(affectedOne)
	s.newCommands()
	s.set(func() {
		s.silent = func(c javamethods.Command) bool { return c == javamethods.Command(javamethods.VersionCommand{}) }
		close(s.lost)
	})
	b.Await("the question", func() bool { return s.hasReceived("Version") })
	b.Shutdown()
	// One may have been sent on the link before its loss.
	assert.NotEmpty(t, resets(s.newCommands()))
	assert.Zero(t, b.Log.FilterMessageSnippet("No reset was possible").Len())
}

// A single answer with an unknown version makes the receiver give up.
func TestAGivenUpServerIsRestoredImmediatelyAndAgainAtTheEnd(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.Monitors = []MonitorConfig{monitor("demo.Shop", "*")}
		c.StateInterval = 10 * time.Millisecond
	})
	s := script(t, b, ProtocolGP)
	b.start()
	s.next().answer(affectedOne)
	s.set(func() {
		s.refuse = func(c javamethods.Command) error {
			switch c.(type) {
			case javamethods.SessionsCommand:
				return &gp.VersionError{Ours: 1}
			case javamethods.ResetCommand:
				return errors.New("the connection broke")
			}
			return nil
		}
	})
	b.awaitLogged("No reset was possible")
	s.set(func() { s.refuse = nil })
	b.Shutdown()
	assert.EqualValues(t, 1, b.point("resets{outcome=failed}"))
	assert.EqualValues(t, 1, b.point("resets{outcome=done}"))
}

func TestAServerWithoutOwedResetsIsNotConnectedAtTheEnd(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.Classes = []ClassesConfig{{Class: "demo.*"}}
		c.Reconnect = RetryConfig{InitialInterval: time.Hour, MaxInterval: time.Hour}
	})
	s := script(t, b, ProtocolGP)
	b.start()
	s.unreachable(b, s.next())
	s.set(func() { s.gone = nil })
	b.Shutdown()
	s.set(func() { assert.Equal(t, 1, s.links) })
}
