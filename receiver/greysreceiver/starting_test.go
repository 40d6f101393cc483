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
	"github.com/callbraid/callbraid/internal/greys"
)

// silentStack has a stack started of which the server says nothing, which is told to whoever
// wanted it.
func silentStack(t *testing.T, s *steering) *asked {
	t.Helper()
	starting := s.order("stack", on("demo.Pay", "*"))
	stack := s.expect("Stack demo.Pay * 100")
	answer := mustDone(t, starting)
	assert.Equal(t, "command sent; no reply yet", answer.Message)
	assert.Equal(t, arguments{"task": "2"}, numberOf(t, answer))
	return stack
}

// By GP a command need not say that it has begun.
func TestByGPSilenceIsAYes(t *testing.T) {
	for name, lose := range map[string]func(s *steering, stack *asked){
		"the link is lost":                   func(s *steering, _ *asked) { s.set(func() { close(s.lost) }) },
		"the command is given up":            func(_ *steering, stack *asked) { stack.end <- errors.New("a frame was too long") },
		"its session ends for its silence":   func(_ *steering, stack *asked) { stack.end <- greys.ErrSessionTimedOut },
		"somebody has all classes reset":     func(s *steering, _ *asked) { s.mustDo("reset", nil) },
		"it is another process, and says so": func(s *steering, _ *asked) { s.set(func() { s.pid++; close(s.lost) }) },
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
				assert.Empty(t, s.Records(eventRefused))
			})
		})
	}
}

// A no that comes after the silence is one all the same, and is said.
func TestByGPANoAfterTheSilenceIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		no   func(stack *asked)
		why  string
		want int
	}{
		"refused":     {func(a *asked) { a.end <- fmt.Errorf("%w: no such class", greys.ErrRefused) }, "no such class", 1},
		"unmatched":   {func(a *asked) { a.answer(&greys.Affected{}) }, "matches no class or method", 1},
		"unsupported": {func(a *asked) { a.end <- greys.ErrUnsupported }, "does not support", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, _ := newSteering(t, ProtocolGP)
				c.no(silentStack(t, s))
				s.Await("the list", func() bool { return len(s.mustDo("list", nil).Items) == 1 })
				s.expectNothing()
				assert.Equal(t, 1, s.bed.receiver.servers[0].tasks.Len())
				s.Shutdown()
				assert.Zero(t, s.bed.Log.FilterMessageSnippet(": the receiver asks again").Len()+s.bed.Log.FilterMessageSnippet(": the receiver tries again").Len())
				records := s.Records(eventRefused)
				require.Len(t, records, c.want)
				if c.want == 0 {
					assert.Len(t, s.Records(eventUnsupported), 1)
					return
				}
				assert.Contains(t, s.awaitSaid("Command did not start").ContextMap()["error"], c.why)
				why, _ := records[0].Attributes().Get(attributeError)
				assert.Contains(t, why.Str(), c.why)
				of, _ := records[0].Attributes().Get(attributePattern)
				assert.Equal(t, "demo.Pay *", of.Str())
			})
		})
	}
}

// What is configured and was ended is ended again where the server says no.
func TestByGPANoAfterTheSilenceLeavesWhatIsConfiguredAsItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, monitor := newSteering(t, ProtocolGP)
		s.mustDo("end", arguments{"task": "1"})
		<-monitor.over
		starting := s.order("monitor", arguments{"class": "demo.Shop", "method": "*", "cycle": "5"})
		again := s.expect("Monitor demo.Shop * 5s")
		mustDone(t, starting)
		again.end <- greys.ErrRefused
		s.awaitSaid("Command did not start")
		assert.Equal(t, []string{"1 monitor demo.Shop *, cycles of 1s, configured: ended"}, s.mustDo("list", nil).Items)
		s.expectNothing()
	})
}

// A start that comes while the same is being ended is neither done nor forgotten.
func TestWhatIsBeingEndedIsNotStartedMeanwhile(t *testing.T) {
	s, monitor := newSteering(t, ProtocolConsole)
	slow := make(chan struct{})
	s.set(func() { s.slow = slow })
	ending := s.order("end", arguments{"task": "1"})
	s.Await("the end", func() bool { return s.was("ended Monitor demo.Shop * 1s") })
	expectReason(t, s.order("monitor", arguments{"class": "demo.Shop", "method": "*", "cycle": "1"}), agentcontrol.NotNow, "task 1 is ending")
	close(slow)
	<-monitor.over
	mustDone(t, ending)
	starting := s.order("monitor", arguments{"class": "demo.Shop", "method": "*", "cycle": "1"})
	s.expect("Monitor demo.Shop * 1s").answer(affectedOne)
	assert.Equal(t, "started", mustDone(t, starting).Message)
}

// By GP who starts tt waits for the end of a list of what is recorded. Who ends it meanwhile
// ends that, too.
func TestByGPRecordedCallsThatAreEndedBeforeTheirListAreNotStarted(t *testing.T) {
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

// A start that was ended before it had begun undoes nothing of a later one.
func TestByGPAStartThatWasEndedUndoesNoLaterOne(t *testing.T) {
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
	list.end <- greys.ErrRefused
	s.expect("Records").end <- nil
	assert.Equal(t, "started", mustDone(t, second).Message)
	assert.Contains(t, s.mustDo("list", nil).Items[0], "0 calls received")
}

// What is over by its limit is asked of the next process again, beside what was started since.
func TestWhatIsOverByItsLimitCountsAmongTheCommands(t *testing.T) {
	s := newUnstartedSteering(t, ProtocolConsole, func(c *Config) {
		c.Limits.MaxCommands, c.Stacks = 2, []CallsConfig{some("demo.Pay", "*", 1)}
	})
	s.start()
	s.theirs = s.only()
	stack := s.byPattern(2)["demo.Pay"]
	stack.answer(affectedOne, &greys.CallStack{})
	stack.end <- nil
	s.awaitSaid("A command has reached its limit")
	expectReason(t, s.order("trace", on("demo.Pay", "*")), agentcontrol.NotNow,
		"there are 2 commands (limits.max_commands), with those that have reached their limit: end one first")
	// It can be started itself, and ended.
	starting := s.order("stack", arguments{"class": "demo.Pay", "method": "*", "limit": "1"})
	s.expect("Stack demo.Pay * 1").answer(affectedOne)
	assert.Equal(t, arguments{"task": "2"}, numberOf(t, mustDone(t, starting)))
	s.mustDo("end", arguments{"task": "2"})
	starting = s.order("trace", on("demo.Pay", "*"))
	s.expect("Trace demo.Pay * 100").answer(affectedOne)
	mustDone(t, starting)
}

// By GP what is configured is over when as many recorded calls were taken as its limit has, as
// on the console.
func TestByGPRecordedCallsThatAreConfiguredAreOverByTheirLimit(t *testing.T) {
	s := newUnstartedSteering(t, ProtocolGP, func(c *Config) {
		c.Monitors, c.Records = nil, []CallsConfig{some("demo.Pay", "*", 1)}
		c.GP.RecordsInterval = 10 * time.Millisecond
	})
	s.start()
	s.theirs = s.only()
	list := s.expect("Records")
	list.answer(&greys.Record{Index: 1, Class: "demo.Pay", Method: "charge"})
	list.end <- nil
	s.awaitSaid("A command has reached its limit")
	s.expectNothing()
	assert.Equal(t, []string{"1 tt demo.Pay *, 1 calls, configured: over"}, s.mustDo("list", nil).Items)
	starting := s.order("tt", arguments{"class": "demo.Pay", "method": "*", "limit": "2"})
	list = s.expect("Records")
	list.answer(&greys.Record{Index: 2, Class: "demo.Pay", Method: "charge"})
	list.end <- nil
	assert.Equal(t, arguments{"task": "1"}, numberOf(t, mustDone(t, starting)))
	s.Await("the spans", func() bool { return len(s.Spans()) == 2 })
	s.expect("Records")
	assert.Equal(t, []string{"1 tt demo.Pay *, 2 calls, configured: read from the server's list, 1 calls received"}, s.mustDo("list", nil).Items)
}

// Who starts tt while a list is read that has as many calls as the limit is told that it began.
func TestByGPWhatIsOverBeforeItsListHasBegun(t *testing.T) {
	s := newUnstartedSteering(t, ProtocolGP, func(c *Config) {
		c.Monitors, c.Records = nil, []CallsConfig{some("demo.Shop", "*", 0)}
		c.GP.RecordsInterval = time.Hour
	})
	s.start()
	s.theirs = s.only()
	list := s.expect("Records")
	starting := s.order("tt", arguments{"class": "demo.Pay", "method": "*", "limit": "1"})
	s.Await("it", func() bool { return len(s.mustDo("list", nil).Items) == 2 })
	list.answer(&greys.Record{Index: 1, Class: "demo.Pay", Method: "charge"})
	list.end <- nil
	assert.Equal(t, "started", mustDone(t, starting).Message)
	assert.Len(t, s.mustDo("list", nil).Items, 1)
}
