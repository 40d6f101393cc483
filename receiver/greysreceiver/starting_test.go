// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/javamethods"
)

// silentStack starts a stack without a reply of the server. The order is answered after the silence.
func silentStack(t *testing.T, s *steering) *pending {
	t.Helper()
	starting := s.order("stack", on("demo.Pay", "*"))
	stack := s.expect("Stack demo.Pay * 100")
	answer := mustDone(t, starting)
	assert.Equal(t, "command sent; no reply yet", answer.Message)
	assert.Equal(t, arguments{"task": "2"}, numberOf(t, answer))
	return stack
}

// By GP a server need not confirm the start of a command.
func TestByGPASilentCommandCountsAsStarted(t *testing.T) {
	for name, lose := range map[string]func(s *steering, stack *pending){
		"the link is lost":               func(s *steering, _ *pending) { s.set(func() { close(s.lost) }) },
		"the command fails":              func(_ *steering, stack *pending) { stack.end <- errors.New("a frame was too long") },
		"its session times out":          func(_ *steering, stack *pending) { stack.end <- javamethods.ErrSessionTimedOut },
		"an operator resets all classes": func(s *steering, _ *pending) { s.mustDo("reset", nil) },
		"the server is another process":  func(s *steering, _ *pending) { s.set(func() { s.pid++; close(s.lost) }) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, _ := newSteering(t, ProtocolGP)
				stack := silentStack(t, s)
				lose(s, stack)
				<-stack.over
				again := s.scripted.next()
				for ; describe(again.command) != "Stack demo.Pay * 100"; again = s.scripted.next() {
					require.Equal(t, "Monitor demo.Shop * 1s", describe(again.command))
				}
				assert.Contains(t, s.mustDo("list", nil).Items[1], "2 stack demo.Pay *, 100 calls: running")
				assert.Empty(t, s.Records("greys.command.refused"))
			})
		})
	}
}

// A refusal after the silence is reported, too.
func TestByGPALateRefusalIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		no   func(stack *pending)
		why  string
		want int
	}{
		"refused":     {func(a *pending) { a.end <- fmt.Errorf("%w: no such class", javamethods.ErrRefused) }, "no such class", 1},
		"unmatched":   {func(a *pending) { a.answer(&javamethods.Affected{}) }, "matches no class or method", 1},
		"unsupported": {func(a *pending) { a.end <- javamethods.ErrUnsupported }, "does not support", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, _ := newSteering(t, ProtocolGP)
				c.no(silentStack(t, s))
				s.Await("the list", func() bool { return len(s.mustDo("list", nil).Items) == 1 })
				s.expectNothing()
				assert.Equal(t, 1, s.bed.receiver.servers[0].TaskCount())
				s.Shutdown()
				assert.Zero(t, s.bed.Log.FilterMessageSnippet(": the receiver sends it again").Len()+s.bed.Log.FilterMessageSnippet(": the receiver tries again").Len())
				records := s.Records("greys.command.refused")
				require.Len(t, records, c.want)
				if c.want == 0 {
					assert.Len(t, s.Records("greys.command.unsupported"), 1)
					return
				}
				assert.Contains(t, s.awaitLogged("Command did not start").ContextMap()["error"], c.why)
				why, _ := records[0].Attributes().Get("greys.error.message")
				assert.Contains(t, why.Str(), c.why)
				of, _ := records[0].Attributes().Get("greys.pattern")
				assert.Equal(t, "demo.Pay *", of.Str())
			})
		})
	}
}

// A configured task that was ended before stays ended after a refusal.
func TestByGPALateRefusalRestoresTheConfiguredTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, monitor := newSteering(t, ProtocolGP)
		s.mustDo("end", arguments{"task": "1"})
		<-monitor.over
		starting := s.order("monitor", arguments{"class": "demo.Shop", "method": "*", "cycle": "5"})
		again := s.expect("Monitor demo.Shop * 5s")
		mustDone(t, starting)
		again.end <- javamethods.ErrRefused
		s.awaitLogged("Command did not start")
		assert.Equal(t, []string{"1 monitor demo.Shop *, cycles of 1s, configured: ended"}, s.mustDo("list", nil).Items)
		s.expectNothing()
	})
}

// A start during the end of the same task fails.
func TestAnEndingTaskCannotBeStarted(t *testing.T) {
	s, monitor := newSteering(t, ProtocolConsole)
	slow := make(chan struct{})
	s.set(func() { s.slow = slow })
	ending := s.order("end", arguments{"task": "1"})
	s.Await("the end", func() bool { return s.hasReceived("ended Monitor demo.Shop * 1s") })
	expectReason(t, s.order("monitor", arguments{"class": "demo.Shop", "method": "*", "cycle": "1"}), agentcontrol.NotNow, "task 1 is ending")
	close(slow)
	<-monitor.over
	mustDone(t, ending)
	starting := s.order("monitor", arguments{"class": "demo.Shop", "method": "*", "cycle": "1"})
	s.expect("Monitor demo.Shop * 1s").answer(affectedOne)
	assert.Equal(t, "started", mustDone(t, starting).Message)
}

// By GP the start of tt waits for the end of a list of recorded calls. An order to end the task meanwhile also ends the
// start.
func TestByGPAnEndOrderBeforeTheListCancelsTheStart(t *testing.T) {
	s, _ := newSteering(t, ProtocolGP)
	first := s.order("tt", on("demo.First", "*"))
	list := s.expect("Records")
	second := s.order("tt", on("demo.Second", "*")) // waits for the next list
	s.Await("it", func() bool { return len(s.mustDo("list", nil).Items) == 3 })
	mustDone(t, s.order("end", arguments{"task": "4"}))
	expectReason(t, second, agentcontrol.Lost, "another operator has ended the task")
	mustDone(t, s.order("end", arguments{"task": "2"}))
	expectReason(t, first, agentcontrol.Lost, "another operator has ended the task")
	list.end <- nil
	assert.Len(t, s.mustDo("list", nil).Items, 1)
	s.expectNothing()
}

// A start that was ended before it began must not undo a later one.
func TestByGPACancelledStartDoesNotUndoALaterOne(t *testing.T) {
	s := newUnstartedSteering(t, ProtocolGP, func(c *Config) {
		c.Monitors, c.Records = nil, []CallsConfig{some("demo.Pay", "*", 0)}
		c.GP.RecordsInterval = time.Hour
	})
	s.start()
	s.theirs = s.only()
	s.expect("Records").end <- nil
	s.mustDo("end", arguments{"task": "1"})
	first := s.order("tt", on("demo.Pay", "*"))
	list := s.expect("Records")
	s.mustDo("end", arguments{"task": "1"})
	expectReason(t, first, agentcontrol.Lost, "another operator has ended the task")
	second := s.order("tt", on("demo.Pay", "*"))
	s.Await("the start", func() bool { return strings.Contains(s.mustDo("list", nil).Items[0], "0 calls received") })
	list.end <- javamethods.ErrRefused
	s.expect("Records").end <- nil
	assert.Equal(t, "started", mustDone(t, second).Message)
	assert.Contains(t, s.mustDo("list", nil).Items[0], "0 calls received")
}

// The receiver sends a completed task to the next process, beside the tasks that were started since.
func TestATaskAtItsLimitCountsAsACommand(t *testing.T) {
	s := newUnstartedSteering(t, ProtocolConsole, func(c *Config) {
		c.Limits.MaxCommands, c.Stacks = 2, []CallsConfig{some("demo.Pay", "*", 1)}
	})
	s.start()
	s.theirs = s.only()
	stack := s.byPattern(2)["demo.Pay"]
	stack.answer(affectedOne, &javamethods.CallStack{})
	stack.end <- nil
	s.awaitLogged("A command has reached its limit")
	expectReason(t, s.order("trace", on("demo.Pay", "*")), agentcontrol.NotNow,
		"there are 2 commands (limits.max_commands), with those that have reached their limit: end one first")
	// The completed task itself can be started, and ended.
	starting := s.order("stack", arguments{"class": "demo.Pay", "method": "*", "limit": "1"})
	s.expect("Stack demo.Pay * 1").answer(affectedOne)
	assert.Equal(t, arguments{"task": "2"}, numberOf(t, mustDone(t, starting)))
	s.mustDo("end", arguments{"task": "2"})
	starting = s.order("trace", on("demo.Pay", "*"))
	s.expect("Trace demo.Pay * 100").answer(affectedOne)
	mustDone(t, starting)
}

// By GP a configured task is over when its limit of recorded calls is reached, as on the console.
func TestByGPAConfiguredRecordTaskIsOverAtItsLimit(t *testing.T) {
	s := newUnstartedSteering(t, ProtocolGP, func(c *Config) {
		c.Monitors, c.Records = nil, []CallsConfig{some("demo.Pay", "*", 1)}
		c.GP.RecordsInterval = 10 * time.Millisecond
	})
	s.start()
	s.theirs = s.only()
	list := s.expect("Records")
	list.answer(&javamethods.Record{Index: 1, Class: "demo.Pay", Method: "charge"})
	list.end <- nil
	s.awaitLogged("A command has reached its limit")
	s.expectNothing()
	assert.Equal(t, []string{"1 tt demo.Pay *, 1 calls, configured: over"}, s.mustDo("list", nil).Items)
	starting := s.order("tt", arguments{"class": "demo.Pay", "method": "*", "limit": "2"})
	list = s.expect("Records")
	list.answer(&javamethods.Record{Index: 2, Class: "demo.Pay", Method: "charge"})
	list.end <- nil
	assert.Equal(t, arguments{"task": "1"}, numberOf(t, mustDone(t, starting)))
	s.Await("the spans", func() bool { return len(s.Spans()) == 2 })
	s.expect("Records")
	assert.Equal(t, []string{"1 tt demo.Pay *, 2 calls, configured: read from the server's list, 1 calls received"}, s.mustDo("list", nil).Items)
}

// If the limit is reached while the list is read, the answer to the start is that it began.
func TestByGPATaskThatReachesItsLimitInItsFirstListHasStarted(t *testing.T) {
	s := newUnstartedSteering(t, ProtocolGP, func(c *Config) {
		c.Monitors, c.Records = nil, []CallsConfig{some("demo.Shop", "*", 0)}
		c.GP.RecordsInterval = time.Hour
	})
	s.start()
	s.theirs = s.only()
	list := s.expect("Records")
	starting := s.order("tt", arguments{"class": "demo.Pay", "method": "*", "limit": "1"})
	s.Await("it", func() bool { return len(s.mustDo("list", nil).Items) == 2 })
	list.answer(&javamethods.Record{Index: 1, Class: "demo.Pay", Method: "charge"})
	list.end <- nil
	assert.Equal(t, "started", mustDone(t, starting).Message)
	assert.Len(t, s.mustDo("list", nil).Items, 1)
}
