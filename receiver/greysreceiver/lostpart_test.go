// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/greys/sim/greysserver"
	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/testkit"
)

var errReset = errors.New("connection reset by peer")

// monitorsOf lists the methods of a pattern, and returns their monitor commands by method.
func (s *scripted) monitorsOf(methods ...string) map[string]*pending {
	s.t.Helper()
	var listed []javamethods.Reply
	for _, m := range methods {
		listed = append(listed, &javamethods.Method{Class: "com.example.Shop", Name: m})
	}
	s.list(listed...)
	of := map[string]*pending{}
	for range methods {
		a := s.next()
		a.answer(&javamethods.Affected{Classes: 1, Methods: 1})
		of[a.command.(javamethods.MonitorCommand).Method.String()] = a
	}
	return of
}

func TestOnlyTheLostCommandOfAPatternIsSentAgain(t *testing.T) {
	b := newBed(t, watchAll)
	s := script(t, b, ProtocolConsole)
	b.start()
	of := s.monitorsOf("pay", "tax")
	of["pay"].answer(table(row(1, "com.example.Shop", "pay", 3, 0, time.Millisecond)))
	s.newCommands()
	of["tax"].end <- errReset
	again := s.expect("Monitor com.example.Shop tax 1s")
	again.answer(&javamethods.Affected{Classes: 1, Methods: 1})
	of["pay"].answer(table(row(2, "com.example.Shop", "pay", 4, 0, time.Millisecond)))
	again.answer(table(row(3, "com.example.Shop", "tax", 5, 0, time.Millisecond)))
	assert.Equal(t, map[string]float64{"com.example.Shop.pay": 7, "com.example.Shop.tax": 5}, values(b.collect(), "java.method.calls"))
	assert.Equal(t, []string{"Monitor com.example.Shop tax 1s"}, s.newCommands(), "no other command and no reset is sent")
	line := b.awaitLogged("A command of a pattern was lost")
	assert.Equal(t, "com.example.Shop.tax", line.ContextMap()["method"])
	assert.EqualValues(t, 1, b.point("commands{outcome=lost}"))
}

func TestALostCommandOfAPatternIsNotSentAloneToAnotherProcess(t *testing.T) {
	b := newBed(t, watchAll)
	s := script(t, b, ProtocolConsole)
	b.start()
	of := s.monitorsOf("pay", "tax")
	s.set(func() { s.pid++ })
	of["pay"].end <- errReset
	s.list(&javamethods.Method{Class: "com.example.Shop", Name: "pay"})
	s.expect("Monitor com.example.Shop pay 1s").answer(&javamethods.Affected{Classes: 1, Methods: 1})
	assert.EqualValues(t, 1, b.point("restarts"))
}

func TestALostTraceOfAPatternIsSentWithTheRestOfItsLimit(t *testing.T) {
	b := newBed(t, func(c *Config) {
		watchAll(c)
		c.Monitors = nil
		c.Traces = []CallsConfig{some("com.example.*", "*", 3)}
	})
	s := script(t, b, ProtocolConsole)
	b.start()
	s.list(&javamethods.Method{Class: "demo.Shop", Name: "checkout"})
	a := s.expect("Trace demo.Shop checkout 3")
	a.answer(&javamethods.Affected{Classes: 1, Methods: 1}, callTree())
	a.end <- errReset
	again := s.expect("Trace demo.Shop checkout 2")
	again.answer(&javamethods.Affected{Classes: 1, Methods: 1}, callTree(), callTree())
	again.end <- nil
	b.awaitLogged("A command has reached its limit")
	b.Await("the spans", func() bool { return len(b.Spans()) == 3 })
}

// manyLayers is the number of instrumentations, beyond one for each task, after which all commands are ended for a
// reset.
const manyLayers = 16

// Each loss leaves instrumentation in the class.
func TestACommandThatIsLostOftenCausesAReset(t *testing.T) {
	b := newBed(t, watchAll)
	s := script(t, b, ProtocolConsole)
	b.start()
	tax := s.monitorsOf("tax")["tax"]
	for range manyLayers {
		tax.end <- errReset
		tax = s.expect("Monitor com.example.Shop tax 1s")
		tax.answer(&javamethods.Affected{Classes: 1, Methods: 1})
	}
	assert.Zero(t, b.point("resets{outcome=done}"))
	tax.end <- errReset
	s.monitorsOf("tax")
	assert.EqualValues(t, 1, b.point("resets{outcome=done}"))
}

// All calls that the server has reported are counted.
func TestSumsOfAPatternSurviveManyLostConnections(t *testing.T) {
	server := play(t, greysserver.Options{
		Protocol: greysserver.Console, Speed: 10, Faults: []greysserver.Fault{greysserver.Close, greysserver.Cut, greysserver.Half}, FaultEvery: 25,
		Program: greysserver.ProgramOptions{Classes: 3, Methods: 4, Rate: 400, Calls: 1500, Seed: 7},
	})
	b := following(t, watchAll, server).start()
	last := ""
	b.Await("the program to rest", func() bool { return server.life().Rests })
	ok := assert.True(t, testkit.Happens(func() bool {
		reported, counted := server.life().Reported.Sum().Calls, sum(values(b.collect(), "java.method.calls"))
		last = fmt.Sprintf("reported %d, counted %v", reported, counted)
		return reported > 1000 && counted == float64(reported)
	}))
	require.True(t, ok, last)
	require.Greater(t, b.point("commands{outcome=lost}"), int64(10))
}

// When the server ends, its commands end one after another. It becomes unreachable before the last one has ended.
func TestTheLastRepliesOfAServerAreCounted(t *testing.T) {
	b := newBed(t, watchAll)
	s := script(t, b, ProtocolConsole)
	b.start()
	of := s.monitorsOf("pay", "tax")
	s.set(func() { s.gone = errUnsent })
	of["pay"].end <- errReset
	b.awaitLogged("A command of a pattern was lost")
	b.Await("an identity check", func() bool { return s.hasReceived("Sessions") })
	of["tax"].answer(table(row(3, "com.example.Shop", "tax", 5, 0, time.Millisecond)))
	of["tax"].end <- errReset
	b.awaitLogged("The server cannot be reached, or was lost")
	var tax int64
	state, ok := b.receiver.servers[0].State()
	require.True(t, ok)
	for _, m := range state.Methods {
		tax += m.Calls
	}
	assert.EqualValues(t, 5, tax)
}
