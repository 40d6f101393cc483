// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/greys/sim/greysserver"
	"github.com/callbraid/callbraid/internal/javamethods"
)

// withLambdas is a program whose methods call each other. It also has classes and constructors on which a released
// server fails.
func withLambdas(t testing.TB) *played {
	return play(t, greysserver.Options{Protocol: greysserver.Console, Program: greysserver.ProgramOptions{
		Classes: 3, Methods: 4, Lambdas: true, Rate: 400, Seed: 7,
	}})
}

// watchAll monitors all methods of a simulated program.
func watchAll(c *Config) {
	c.PerMethod = true
	c.Protocol = ProtocolConsole
	c.CollectionInterval = time.Hour // the test collects
	c.Monitors = []MonitorConfig{{TargetConfig: TargetConfig{Class: "com.example.*", Method: "*"}, Cycle: time.Second}}
}

func TestAPatternThatMatchesLambdasAndConstructorsHasTrueCountsAndTimes(t *testing.T) {
	server := withLambdas(t)
	b := following(t, watchAll, server).start()
	b.Await("calls of all methods", func() bool {
		return len(values(b.collect(), "java.method.calls")) == 12
	})
	b.Await("enough calls", func() bool { return sum(values(b.collect(), "java.method.calls")) > 2000 })
	calls, seconds := values(b.collect(), "java.method.calls"), values(b.collect(), "java.method.time")
	// The duration of an outermost call includes its callees. If all methods shared one begin, the mean would be less
	// than half.
	var made greysserver.Count
	for _, of := range server.life().Made {
		made.Calls, made.Time = made.Calls+of.Calls, made.Time+of.Time
	}
	assert.InEpsilon(t, made.Time.Seconds()/float64(made.Calls), sum(seconds)/sum(calls), 0.1, "mean time of a call")
	assert.Equal(t, map[string]float64{"monitor com.example.* *": 12}, values(b.collect(), "greys.matched.methods"))
	assert.Zero(t, b.point("commands{outcome=refused}"))
}

func TestMethodsBeyondTheCommandLimitAreCountedWithoutTimes(t *testing.T) {
	server := withLambdas(t)
	b := following(t, func(c *Config) {
		watchAll(c)
		c.Limits.MaxPatternCommands = 8 // one class has its own commands, two share one
	}, server).start()
	b.Await("calls of all methods", func() bool { return len(values(b.collect(), "java.method.calls")) == 12 })
	assert.Len(t, values(b.collect(), "java.method.time"), 4)
	line := b.awaitLogged("and have no times and call trees")
	assert.EqualValues(t, 8, line.ContextMap()["methods_without_times"])
	assert.Positive(t, b.point("times_left_out{reply=row}"))
}

func TestARefusedCommandIsResetAndTheOthersContinue(t *testing.T) {
	server := withLambdas(t)
	b := following(t, func(c *Config) {
		watchAll(c)
		c.Traces = []CallsConfig{{TargetConfig: TargetConfig{Class: "com.example.shop.Service1", Method: "<init>"}}}
	}, server).start()
	b.awaitLogged("The server could not carry out a command")
	b.Await("a reset", func() bool { return b.point("resets{outcome=done}") > 0 })
	b.Await("calls of all methods", func() bool { return len(values(b.collect(), "java.method.calls")) == 12 })
	assert.EqualValues(t, 1, b.point("commands{outcome=refused}"), "it is not sent again soon")
}

func TestARefusedMethodIsNotWatched(t *testing.T) {
	b := newBed(t, watchAll)
	s := script(t, b, ProtocolConsole)
	s.refuse = func(command javamethods.Command) error {
		if m, is := command.(javamethods.MonitorCommand); is && m.Method.String() == "bad" {
			return fmt.Errorf("%w: Command execution failed", javamethods.ErrRefused)
		}
		return nil
	}
	b.start()
	shop := []javamethods.Reply{&javamethods.Method{Class: "com.example.Shop", Name: "bad"}, &javamethods.Method{Class: "com.example.Shop", Name: "good"}}
	s.list(shop...) // it is unknown which of the simultaneous commands is refused
	s.list(shop...)
	assert.Equal(t, "com.example.Shop.bad", b.awaitLogged("The server could not put its code into a method").ContextMap()["method"])
	s.newCommands()
	s.list(shop...)
	s.expect("Monitor com.example.Shop good 1s").answer(&javamethods.Affected{Classes: 1, Methods: 1})
	assert.NotContains(t, s.newCommands(), "Monitor com.example.Shop bad 1s")
	assert.EqualValues(t, 2, b.point("resets{outcome=done}"))
	assert.EqualValues(t, 1, b.point("methods_left_out{reason=refused}"))
}

// list answers the commands that list classes and methods.
func (s *scripted) list(methods ...javamethods.Reply) {
	s.t.Helper()
	for {
		a := s.next()
		switch a.command.(type) {
		case javamethods.ClassesCommand:
			a.end <- nil
		case javamethods.MethodsCommand:
			a.answer(methods...)
			a.end <- nil
			return
		}
	}
}

func TestTimesOfOverloadsAreLeftOut(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.PerMethod = true
		c.Monitors = []MonitorConfig{{TargetConfig: TargetConfig{Class: "com.example.Shop", Method: "pay"}}}
	})
	s := script(t, b, ProtocolConsole)
	b.start()
	m := s.expect("Monitor com.example.Shop pay 10s")
	m.answer(&javamethods.Affected{Classes: 1, Methods: 2})
	m.answer(&javamethods.Statistics{Methods: []javamethods.MethodStatistics{{Class: "com.example.Shop", Method: "pay", Calls: 3, Succeeded: 3, HasMean: true, HasRange: true}}})
	assert.Equal(t, map[string]float64{"com.example.Shop.pay": 3}, values(b.collect(), "java.method.calls"))
	assert.Empty(t, values(b.collect(), "java.method.time"))
	assert.Empty(t, values(b.collect(), "java.method.duration.max"))
	b.awaitLogged("A command matches several methods of one name")
}

// sum returns the sum of all values.
func sum(values map[string]float64) (sum float64) {
	for _, v := range values {
		sum += v
	}
	return sum
}

func TestListedMethodsWithoutInstrumentationAreLogged(t *testing.T) {
	b := newBed(t, watchAll)
	s := script(t, b, ProtocolConsole)
	b.start()
	s.list(&javamethods.Method{Class: "com.example.New", Name: "pay"}, &javamethods.Method{Class: "com.example.Shop", Name: "pay"})
	for range 2 {
		matched := &javamethods.Affected{}
		m := s.next()
		if describe(m.command) == "Monitor com.example.Shop pay 1s" {
			matched = &javamethods.Affected{Classes: 1, Methods: 1}
		}
		m.answer(matched)
	}
	line := b.awaitLogged("The server lists a method, but does not instrument it")
	assert.Equal(t, "com.example.New.pay", line.ContextMap()["method"])
	assert.EqualValues(t, 1, b.point("methods_left_out{reason=no_code}"))
	assert.Equal(t, map[string]float64{"monitor com.example.* *": 1}, values(b.collect(), "greys.matched.methods"))
	b.Await("the end of its command", func() bool { return s.hasReceived("ended Monitor com.example.New pay 1s") })
}

func TestAPatternWithoutAnyInstrumentationMatchesNothing(t *testing.T) {
	b := newBed(t, watchAll)
	s := script(t, b, ProtocolConsole)
	b.start()
	s.list(&javamethods.Method{Class: "com.example.New", Name: "pay"})
	s.expect("Monitor com.example.New pay 1s").answer(&javamethods.Affected{})
	b.awaitLogged("A pattern matches no class or method")
	s.expect("Classes com.example.*")
}

func TestATreeOfAnUnendedCallIsDropped(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.PerMethod = true
		c.Traces = []CallsConfig{some("demo.Shop", "checkout", 1)}
	})
	s := script(t, b, ProtocolConsole)
	b.start()
	m := s.expect("Trace demo.Shop checkout 1")
	m.answer(&javamethods.Affected{Classes: 1, Methods: 1})
	unended := callTree()
	unended.Unended = true
	m.answer(unended, callTree())
	m.end <- nil
	b.awaitLogged("A command has reached its limit")
	assert.EqualValues(t, 1, b.point("times_left_out{reply=tree}"))
	b.Await("the span", func() bool { return len(b.Spans()) == 1 })
}
