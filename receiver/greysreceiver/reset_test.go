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

	"github.com/callbraid/callbraid/internal/greys"
	"github.com/callbraid/callbraid/internal/greys/gp"
)

// byPattern gives commands that the test answers, by the pattern of their class.
func (s *scripted) byPattern(n int) map[string]*asked {
	s.t.Helper()
	all := map[string]*asked{}
	for range n {
		a := s.next()
		switch c := a.command.(type) {
		case greys.MonitorCommand:
			all[c.Class.String()] = a
		case greys.StackCommand:
			all[c.Class.String()] = a
		case greys.TraceCommand:
			all[c.Class.String()] = a
		}
	}
	return all
}

func resets(heard []string) (resets []string) {
	for _, text := range heard {
		if len(text) > 6 && text[:6] == "Reset " {
			resets = append(resets, text)
		}
	}
	slices.Sort(resets)
	return resets
}

func TestByGPAResetIsAskedForWhereNoRunningCommandCanMeetIt(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.Monitors = []MonitorConfig{monitor("demo.Shop*", "*")}
		c.Stacks = []CallsConfig{some("demo.Pay", "*", 1), some("demo.*Front", "*", 1)}
	})
	s := script(t, b, ProtocolGP)
	b.start()
	all := s.byPattern(3)
	stack := &greys.CallStack{Frames: []greys.Frame{{Class: "demo.Pay", Method: "charge"}}}
	for _, class := range []string{"demo.Pay", "demo.*Front"} {
		all[class].answer(affectedOne, stack)
		all[class].end <- nil
	}
	b.Await("the resets", func() bool { return b.point("resets{outcome=done}") == 1 && b.point("commands{outcome=ended}") == 2 })
	assert.Equal(t, []string{"Reset demo.Pay"}, resets(s.heard()), "demo.ShopFront is one that the monitor may count")
	b.Shutdown()
	heard := s.heard()
	assert.Equal(t, "ended Monitor demo.Shop* * 1s", heard[0])
	assert.Equal(t, []string{"Reset demo.*Front", "Reset demo.Shop*"}, resets(heard))
}

// On the console a reset takes everything out of all classes.
func TestOnTheConsoleAResetIsAskedForWhereNoCommandRuns(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.Monitors = []MonitorConfig{monitor("demo.Shop", "*")}
		c.Stacks = []CallsConfig{some("other.Pay", "*", 1)}
	})
	s := script(t, b, ProtocolConsole)
	b.start()
	all := s.byPattern(2)
	all["other.Pay"].answer(affectedOne, &greys.CallStack{Frames: []greys.Frame{{Class: "other.Pay", Method: "charge"}}})
	all["other.Pay"].end <- nil
	b.awaitSaid("A command has reached its limit")
	assert.Empty(t, resets(s.heard()))
	// The monitor is lost: before it is asked again all is taken out.
	all["demo.Shop"].answer(affectedOne)
	all["demo.Shop"].end <- errors.New("the connection broke")
	s.expect("Monitor demo.Shop * 1s")
	heard := s.heard()
	assert.Len(t, resets(heard), 1, "one is for all")
	assert.Equal(t, "Monitor demo.Shop * 1s", heard[len(heard)-1])
	b.Shutdown()
	assert.Equal(t, []string{"Reset demo.Shop"}, resets(s.heard()))
}

func TestAResetThatFailsIsTriedAgain(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Stacks = []CallsConfig{some("demo.Pay", "*", 1)} })
	s := script(t, b, ProtocolConsole)
	fails := []error{errors.New("the connection broke"), greys.ErrRefused}
	s.refuse = func(c greys.Command) (err error) {
		if _, is := c.(greys.ResetCommand); is && len(fails) > 0 {
			err, fails = fails[0], fails[1:]
		}
		return err
	}
	b.start()
	a := s.next()
	a.answer(affectedOne, &greys.CallStack{Frames: []greys.Frame{{Class: "demo.Pay", Method: "charge"}}})
	a.end <- nil
	b.Await("the reset", func() bool { return b.point("resets{outcome=done}") == 1 })
	assert.EqualValues(t, 2, b.point("resets{outcome=failed}"))
	b.Shutdown()
	assert.EqualValues(t, 1, b.point("resets{outcome=done}"), "it is not owed any more")
	assert.False(t, b.receiver.servers[0].work.HasLeftovers(), "nothing lies in classes any more")
}

func TestAServerThatCannotResetIsNotAskedForEver(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Stacks = []CallsConfig{some("demo.Pay", "*", 1)} })
	s := script(t, b, ProtocolConsole)
	s.refuse = func(c greys.Command) error {
		if _, is := c.(greys.ResetCommand); is {
			return greys.ErrUnsupported
		}
		return nil
	}
	b.start()
	a := s.next()
	a.answer(affectedOne, &greys.CallStack{Frames: []greys.Frame{{Class: "demo.Pay", Method: "charge"}}})
	a.end <- nil
	b.awaitSaid("A reset failed")
	b.Shutdown()
	assert.EqualValues(t, 1, b.point("resets{outcome=failed}"))
}

func TestWhatWasNotSentOrMatchedNothingIsNotReset(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Stacks = []CallsConfig{some("demo.Pay", "*", 1)} })
	s := script(t, b, ProtocolConsole)
	b.start()
	s.next().end <- errUnsent
	s.next().answer(&greys.Affected{})
	s.next().end <- errUnsent
	s.next().end <- greys.ErrUnsupported
	b.awaitSaid("does not support")
	b.Shutdown()
	assert.Empty(t, resets(s.heard()))
}

// A command that is lost again and again, beside one that runs, would put one thing over the
// other into classes.
func TestLayersAreTakenOutNowAndThen(t *testing.T) {
	for name, refuses := range map[string]error{"which the server does": nil, "which the server refuses": greys.ErrRefused} {
		t.Run(name, func(t *testing.T) { takeOutLayers(t, refuses) })
	}
}

func takeOutLayers(t *testing.T, refuses error) {
	b := newBed(t, func(c *Config) {
		c.Monitors = []MonitorConfig{monitor("demo.Shop", "*")}
		c.Stacks = []CallsConfig{some("demo.Pay", "*", 0)}
	})
	s := script(t, b, ProtocolConsole)
	s.refuse = func(c greys.Command) error {
		if _, is := c.(greys.ResetCommand); is {
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
	for ; !s.was("ended Monitor demo.Shop * 1s"); lost++ {
		select {
		case again := <-s.asked:
			again.end <- errors.New("the connection broke")
		case <-time.After(10 * time.Millisecond):
		}
		if lost > 100*manyLayers {
			t.Fatal("nothing is ever taken out")
		}
	}
	s.expectNothing()
	close(s.slow)
	<-all["demo.Shop"].over
	s.next()
	heard := s.heard()
	reset := resets(heard)
	require.NotEmpty(t, reset)
	assert.True(t, len(reset) == 1 || refuses != nil, "one is for all, and tried again where it was refused")
	assert.Less(t, slices.Index(heard, "ended Monitor demo.Shop * 1s"), slices.Index(heard, reset[0]))
	assert.Greater(t, lost, manyLayers)
}

// unreachable has a link be lost with what ran on it, and the server not be reached again:
// the receiver pauses then.
func (s *scripted) unreachable(b *bed, a *asked) {
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
	b.awaitSaid("The server cannot be reached, or was lost")
	s.heard()
}

// A server that is not connected to when the collector is stopped is left as it was found, too.
func TestAShutdownInAPauseAsksForTheResets(t *testing.T) {
	for _, protocol := range []Protocol{ProtocolConsole, ProtocolGP} {
		t.Run(string(protocol), func(t *testing.T) {
			b := newBed(t, func(c *Config) {
				c.Monitors = []MonitorConfig{monitor("demo.Shop", "*")}
				c.Reconnect = RetryConfig{InitialInterval: time.Hour, MaxInterval: time.Hour}
			})
			s := script(t, b, protocol)
			b.start()
			a := s.next()
			a.answer(affectedOne)
			s.unreachable(b, a)
			s.set(func() { s.gone = nil })
			b.Shutdown()
			assert.Len(t, resets(s.heard()), 1)
			assert.EqualValues(t, 1, b.point("resets{outcome=done}"))
			assert.Zero(t, b.Log.FilterMessageSnippet("No reset was possible").Len())
		})
	}
}

func TestAShutdownInAPauseSaysWhatStays(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.Monitors = []MonitorConfig{monitor("demo.Shop", "*")}
		c.Reconnect = RetryConfig{InitialInterval: time.Hour, MaxInterval: time.Hour}
	})
	s := script(t, b, ProtocolGP)
	b.start()
	a := s.next()
	a.answer(affectedOne)
	s.unreachable(b, a)
	b.Shutdown()
	line := b.awaitSaid("No reset was possible").ContextMap()
	assert.Equal(t, []any{"demo.Shop"}, line["patterns"])
	assert.Contains(t, line["error"], "connection refused")
	assert.EqualValues(t, 1, b.point("resets{outcome=failed}"))
}

// Nothing is taken out of another process than the one that it was put into.
func TestAShutdownInAPauseLeavesAnotherProcessAlone(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.Monitors = []MonitorConfig{monitor("demo.Shop", "*")}
		c.Reconnect = RetryConfig{InitialInterval: time.Hour, MaxInterval: time.Hour}
	})
	s := script(t, b, ProtocolGP)
	b.start()
	a := s.next()
	a.answer(affectedOne)
	s.unreachable(b, a)
	s.set(func() { s.gone, s.pid = nil, s.pid+1 })
	b.Shutdown()
	assert.Empty(t, resets(s.heard()))
}

// One that is given up, by one answer, is left as it was found at once.
func TestAServerThatIsGivenUpIsLeftAsItWasFound(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.Monitors = []MonitorConfig{monitor("demo.Shop", "*")}
		c.StateInterval = time.Second
	})
	s := script(t, b, ProtocolGP)
	b.start()
	s.next().answer(affectedOne)
	s.set(func() {
		s.refuse = func(c greys.Command) error {
			if _, is := c.(greys.SessionsCommand); is {
				return &gp.VersionError{Ours: 1}
			}
			return nil
		}
	})
	b.awaitSaid("and the receiver gives up")
	b.Await("the reset", func() bool { return s.was("Reset demo.Shop") })
}

// On the console it is the same line for all patterns, and one failure stays with all.
func TestOnTheConsoleOneResetIsForAllPatterns(t *testing.T) {
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
		s.refuse = func(greys.Command) error { return errors.New("the connection broke") }
	})
	b.Shutdown()
	assert.Len(t, resets(s.heard()), 1)
	assert.EqualValues(t, 1, b.point("resets{outcome=failed}"))
	assert.ElementsMatch(t, []any{"demo.A", "demo.B", "demo.C"}, b.awaitSaid("No reset was possible").ContextMap()["patterns"])
}

// The end can come while a server is met again, of whose link was lost what ran.
func TestAShutdownWhileAServerIsMetAgainAsksForTheResets(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Monitors = []MonitorConfig{monitor("demo.Shop", "*")} })
	s := script(t, b, ProtocolGP)
	b.start()
	s.next().answer(affectedOne)
	s.heard()
	s.set(func() {
		s.silent = func(c greys.Command) bool { return c == greys.Command(greys.VersionCommand{}) }
		close(s.lost)
	})
	b.Await("the question", func() bool { return s.was("Version") })
	b.Shutdown()
	// One may have been asked for on the link when it was lost.
	assert.NotEmpty(t, resets(s.heard()))
	assert.Zero(t, b.Log.FilterMessageSnippet("No reset was possible").Len())
}

func TestWhatCouldNotBeTakenOutOfAServerThatIsGivenUpIsTriedAgainAtTheEnd(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.Monitors = []MonitorConfig{monitor("demo.Shop", "*")}
		c.StateInterval = 10 * time.Millisecond
	})
	s := script(t, b, ProtocolGP)
	b.start()
	s.next().answer(affectedOne)
	s.set(func() {
		s.refuse = func(c greys.Command) error {
			switch c.(type) {
			case greys.SessionsCommand:
				return &gp.VersionError{Ours: 1}
			case greys.ResetCommand:
				return errors.New("the connection broke")
			}
			return nil
		}
	})
	b.awaitSaid("No reset was possible")
	s.set(func() { s.refuse = nil })
	b.Shutdown()
	assert.EqualValues(t, 1, b.point("resets{outcome=failed}"))
	assert.EqualValues(t, 1, b.point("resets{outcome=done}"))
}

func TestAServerInWhichNothingIsOwedIsNotConnectedToAtTheEnd(t *testing.T) {
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
