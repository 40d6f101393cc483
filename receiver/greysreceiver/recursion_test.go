// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/greys/sim/greysserver"
	"github.com/callbraid/callbraid/internal/javamethods"
)

// checkAll monitors all methods, and checks stacks first, as by default.
func checkAll(c *Config) {
	watchAll(c)
	c.RecursionCheck = 20
}

func TestTimesOfRecursiveMethodsAreDropped(t *testing.T) {
	server := play(t, greysserver.Options{Protocol: greysserver.Console, Program: greysserver.ProgramOptions{
		Classes: 3, Methods: 4, Recursion: true, Rate: 400, Seed: 7,
	}})
	b := following(t, checkAll, server).start()
	b.Await("times of all others", func() bool { return len(values(b.collect(), "java.method.time")) == 9 })
	b.Await("calls of all methods", func() bool { return len(values(b.collect(), "java.method.calls")) == 12 })
	for name, seconds := range values(b.collect(), "java.method.time") {
		assert.NotContains(t, name, "operation0")
		dot := strings.LastIndexByte(name, '.')
		class, method := name[:dot], name[dot+1:]
		made := server.life().Made[greysserver.MethodName{Class: class, Method: method}]
		calls := values(b.collect(), "java.method.calls")[name]
		assert.InEpsilon(t, made.Time.Seconds()/float64(made.Calls), seconds/calls, 0.3, name)
	}
	for name := range values(b.collect(), "java.method.duration.max") {
		assert.NotContains(t, name, "operation0")
	}
	b.awaitLogged("A method calls itself")
	assert.Equal(t, 3, b.Log.FilterMessageSnippet("A method calls itself").Len(), "each once")
	assert.Positive(t, b.point("times_left_out{reply=row}"))
}

// checked returns a monitor of two methods, and the command that requests their stacks.
func checked(t *testing.T) (b *bed, s *scripted, stacks *pending) {
	t.Helper()
	b = newBed(t, func(c *Config) {
		checkAll(c)
		c.RecursionCheck = 2
	})
	s = script(t, b, ProtocolConsole)
	b.start()
	of := s.monitorsOf("pay", "tax")
	stacks = s.expect(`Stack com\.example\.Shop pay|tax 4`)
	stacks.answer(&javamethods.Affected{Classes: 1, Methods: 2})
	of["pay"].answer(table(row(1, "com.example.Shop", "pay", 3, 0, time.Second)))
	of["tax"].answer(table(row(1, "com.example.Shop", "tax", 2, 0, time.Second)))
	return b, s, stacks
}

// stackOf returns a stack of methods, the innermost first.
func stackOf(methods ...string) *javamethods.CallStack {
	s := &javamethods.CallStack{Thread: javamethods.Thread{Name: "main", ID: 1}}
	for _, m := range methods {
		s.Frames = append(s.Frames, javamethods.Frame{Class: "com.example.Shop", Method: m})
	}
	return s
}

func TestTimesAreWithheldUntilStacksProveThem(t *testing.T) {
	b, s, stacks := checked(t)
	assert.Len(t, values(b.collect(), "java.method.calls"), 2)
	assert.Empty(t, values(b.collect(), "java.method.time"))
	assert.Empty(t, values(b.collect(), "java.method.duration.mean"))
	stacks.answer(stackOf("pay", "main"), stackOf("tax", "pay", "main"), stackOf("pay", "main"))
	assert.Equal(t, map[string]float64{"com.example.Shop.pay": 3}, values(b.collect(), "java.method.time"), "including the earlier rows")
	stacks.answer(stackOf("tax", "discount", "tax", "main"))
	stacks.end <- nil
	assert.Equal(t, map[string]float64{"com.example.Shop.pay": 3}, values(b.collect(), "java.method.time"))
	assert.Equal(t, "com.example.Shop.tax", b.awaitLogged("A method calls itself").ContextMap()["method"])
	assert.EqualValues(t, 1, b.point("times_left_out{reply=row}"))
	s.expectNothing()
}

func TestStacksOfRarelyCalledMethodsAreRequestedAgain(t *testing.T) {
	b, s, stacks := checked(t)
	stacks.answer(stackOf("pay"), stackOf("pay"), stackOf("pay"), stackOf("tax"))
	stacks.end <- nil
	again := s.expect(`Stack com\.example\.Shop tax 2`)
	again.end <- errReset
	again = s.expect(`Stack com\.example\.Shop tax 2`)
	again.answer(stackOf("tax"))
	assert.Contains(t, values(b.collect(), "java.method.time"), "com.example.Shop.tax")
}

func TestWithoutStacksTimesStayWithheld(t *testing.T) {
	b, s, stacks := checked(t)
	stacks.end <- fmt.Errorf("%w: Command execution failed", javamethods.ErrRefused)
	b.awaitLogged("The server sends no stacks")
	s.monitorsOf("pay", "tax")
	s.expectNothing()
	assert.EqualValues(t, 1, b.point("resets{outcome=done}"))
	assert.Empty(t, values(b.collect(), "java.method.time"))
}

// The stack is in the detail of the recorded call.
func TestRecordedCallsOfARecursiveMethodAreDropped(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.PerMethod, c.RecursionCheck = true, 20
		c.Records = []CallsConfig{some("com.example.Shop", "tax", 3)}
	})
	s := script(t, b, ProtocolConsole)
	frames := map[int64][]string{1001: {"tax"}, 1002: {"tax", "tax"}, 1003: {"tax"}}
	s.detail = func(index int64) *javamethods.RecordDetail {
		return &javamethods.RecordDetail{
			Record: javamethods.Record{Index: index, Class: "com.example.Shop", Method: "tax"}, Stack: *stackOf(frames[index]...),
		}
	}
	b.start()
	a := s.expect("Record com.example.Shop tax 3")
	a.answer(&javamethods.Affected{Classes: 1, Methods: 1})
	for index := range int64(3) {
		a.answer(&javamethods.Record{Index: 1001 + index, Class: "Shop", Method: "tax", IsSimple: true, Cost: time.Millisecond})
	}
	a.end <- nil
	b.awaitLogged("A method calls itself")
	b.Await("two dropped records", func() bool { return b.point("times_left_out{reply=record}") == 2 })
	b.Await("the first", func() bool { return len(b.Spans()) == 1 })
}
