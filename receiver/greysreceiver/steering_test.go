// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/agentcontrol/agentcontroltest"
	"github.com/callbraid/callbraid/internal/greys/gp"
	"github.com/callbraid/callbraid/internal/greys/sim/greysserver"
	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/javamethods/server"
	"github.com/callbraid/callbraid/internal/receiverkit/sharedreceiver"
)

// arguments are the arguments of a command, by name.
type arguments = map[string]string

// steering is a server that operators steer while the test answers its commands.
type steering struct {
	*bed
	*scripted
	theirs agentcontrol.Agent
}

// newSteering returns a connected server that counts calls of demo.Shop.
func newSteering(t *testing.T, protocol Protocol, set ...func(*Config)) (*steering, *pending) {
	t.Helper()
	s := newUnstartedSteering(t, protocol, set...)
	s.start()
	s.theirs = s.only()
	monitor := s.expect("Monitor demo.Shop * 1s")
	monitor.answer(affectedOne)
	return s, monitor
}

func newUnstartedSteering(t *testing.T, protocol Protocol, set ...func(*Config)) *steering {
	t.Helper()
	b := newBed(t, func(c *Config) {
		c.Monitors = []MonitorConfig{monitor("demo.Shop", "*")}
		for _, more := range set {
			more(c)
		}
	})
	b.Host = &agentcontroltest.Directory{}
	return &steering{bed: b, scripted: script(t, b, protocol)}
}

// only returns the single registered server.
func (b *bed) only() agentcontrol.Agent {
	b.T.Helper()
	all := b.Host.(*agentcontroltest.Directory).Agents()
	require.Len(b.T, all, 1)
	return all[0]
}

// ordered is the result of an order.
type ordered struct {
	agentcontrol.Answer
	err error
}

// beginOrder starts an order, and returns its future result.
func beginOrder(ctx context.Context, a agentcontrol.Agent, command string, written arguments) <-chan ordered {
	done := make(chan ordered, 1)
	go func() {
		answer, err := agentcontroltest.Order(ctx, a, command, written)
		done <- ordered{answer, err}
	}()
	return done
}

func (s *steering) order(command string, written arguments) <-chan ordered {
	return beginOrder(s.bed.T.Context(), s.theirs, command, written)
}

// mustDo carries out an order.
func (s *steering) mustDo(command string, written arguments) agentcontrol.Answer {
	s.bed.T.Helper()
	return mustDone(s.bed.T, s.order(command, written))
}

func mustDone(t testing.TB, done <-chan ordered) agentcontrol.Answer {
	t.Helper()
	o := await(t, done)
	require.NoError(t, o.err)
	return o.Answer
}

func expectReason(t testing.TB, done <-chan ordered, reason agentcontrol.Reason, text string) {
	t.Helper()
	o := await(t, done)
	require.ErrorContains(t, o.err, text)
	assert.Equal(t, reason, agentcontrol.ReasonOf(o.err), "%v", o.err)
}

func await(t testing.TB, done <-chan ordered) ordered {
	t.Helper()
	select {
	case o := <-done:
		return o
	case <-time.After(patience):
		require.Fail(t, "the order has no result")
		return ordered{}
	}
}

// numberOf returns the task number in an answer.
func numberOf(t testing.TB, a agentcontrol.Answer) arguments {
	t.Helper()
	for _, d := range a.Details {
		if d.Name == server.ArgumentTask {
			return arguments{server.ArgumentTask: d.Value}
		}
	}
	require.Fail(t, "the answer has no task", "%v", a)
	return nil
}

func on(class, method string) arguments {
	return arguments{"class": class, "method": method}
}

func TestAStartedTaskRunsUntilItsLimit(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol Protocol) {
		s, _ := newSteering(t, protocol)
		starting := s.order("trace", arguments{"class": "demo.Pay", "method": "charge", "limit": "2"})
		trace := s.expect("Trace demo.Pay charge 2")
		assert.Empty(t, starting, "the server has not replied")
		trace.answer(affectedOne)
		answer := mustDone(t, starting)
		assert.Equal(t, agentcontrol.Answer{Message: "started", Details: []agentcontrol.Detail{
			{Name: "task", Value: "2"}, {Name: "matching classes", Value: "1"}, {Name: "matching methods", Value: "2"},
		}}, answer)
		trace.answer(callTree())
		assert.Equal(t, []string{
			"1 monitor demo.Shop *, cycles of 1s, configured: running, matches 1 classes and 2 methods",
			"2 trace demo.Pay charge, 2 calls: running, 1 calls received, matches 1 classes and 2 methods",
		}, s.mustDo("list", nil).Items)
		trace.answer(callTree())
		trace.end <- nil
		s.Await("the spans", func() bool { return len(s.Spans()) == 2 })
		s.Await("the task to be over", func() bool { return len(s.mustDo("list", nil).Items) == 1 })
		assert.Equal(t, 1, s.bed.receiver.servers[0].TaskCount(), "the task is removed")
		// It can be started again, with a new number.
		starting = s.order("trace", arguments{"class": "demo.Pay", "method": "charge", "limit": "2"})
		s.expect("Trace demo.Pay charge 2").answer(affectedOne)
		assert.Equal(t, arguments{"task": "3"}, numberOf(t, mustDone(t, starting)))
	})
}

func TestAStartOrderSendsItsCommand(t *testing.T) {
	s, _ := newSteering(t, ProtocolConsole)
	for command, want := range map[string]string{
		"monitor": "Monitor demo.Pay charge 10s",
		"trace":   "Trace demo.Pay charge 100",
		"stack":   "Stack demo.Pay charge 100",
		"tt":      "Record demo.Pay charge 100",
	} {
		starting := s.order(command, on("demo.Pay", "charge"))
		s.expect(want).answer(affectedOne)
		mustDone(t, starting)
	}
	starting := s.order("stack", arguments{"class": `demo\..*`, "method": "get.*", "regexp": "true", "limit": "-1"})
	asked := s.expect(`Stack demo\..* get.* 0`)
	assert.True(t, asked.command.(javamethods.StackCommand).Regexp)
	asked.answer(affectedOne)
	mustDone(t, starting)
	starting = s.order("monitor", arguments{"class": "demo.Store", "method": "*", "cycle": "60"})
	s.expect("Monitor demo.Store * 1m0s").answer(affectedOne)
	mustDone(t, starting)
}

// Orders are checked like the configuration: they can contain only patterns of names.
func TestInvalidPatternsAreNotSent(t *testing.T) {
	s, _ := newSteering(t, ProtocolConsole)
	for _, wrong := range []arguments{
		{"method": "*"},
		{"class": "demo.Pay"},
		on("demo.Pay *\nshutdown", "*"),
		on("demo.Pay", "* 'params[0]'"),
		on("-n", "*"),
		on("demo.Pay", `"`),
		on(strings.Repeat("x", 1025), "*"),
		{"class": "demo.Pay", "method": "*", "limit": "-2"},
		{"class": "demo.Pay", "method": "*", "limit": "2147483648"},
		{"class": "demo.Pay", "method": "*", "regexp": "perhaps"},
		{"class": "demo.Pay", "method": "*", "condition": "true"},
	} {
		expectReason(t, s.order("trace", wrong), agentcontrol.BadArgument, "")
	}
	for _, cycle := range []string{"0", "86401", "1s"} {
		expectReason(t, s.order("monitor", arguments{"class": "demo.Pay", "method": "*", "cycle": cycle}), agentcontrol.BadArgument, "cycle")
	}
	expectReason(t, s.order("reset", arguments{"class": "a b"}), agentcontrol.BadArgument, "arguments.class")
	expectReason(t, s.order("end", nil), agentcontrol.BadArgument, "task")
	expectReason(t, s.order("end", arguments{"task": "7"}), agentcontrol.BadArgument, "task 7 does not exist")
	expectReason(t, s.order("watch", nil), agentcontrol.UnknownCommand, "monitor or trace or stack or tt or list or end or reset")
	s.expectNothing()
}

func TestAnExistingTaskIsNotStartedTwice(t *testing.T) {
	s, _ := newSteering(t, ProtocolConsole, func(c *Config) { c.Limits.MaxCommands = 2 })
	answer := s.mustDo("monitor", arguments{"class": "demo.Shop", "method": "*", "cycle": "1"})
	assert.Equal(t, "this task exists already", answer.Message)
	assert.Equal(t, arguments{"task": "1"}, numberOf(t, answer))
	expectReason(t, s.order("monitor", on("demo.Shop", "*")), agentcontrol.NotNow, "task 1 has the same patterns, and another cycle or limit")
	starting := s.order("stack", on("demo.Shop", "*"))
	s.expect("Stack demo.Shop * 100").answer(affectedOne)
	mustDone(t, starting)
	expectReason(t, s.order("trace", on("demo.Shop", "*")), agentcontrol.NotNow, "there are 2 commands (limits.max_commands)")
	s.expectNothing()
}

func TestAFailedStartIsNotSentAgain(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol Protocol) {
		s, _ := newSteering(t, protocol)
		for _, c := range []struct {
			end    func(a *pending)
			reason agentcontrol.Reason
			text   string
		}{
			{func(a *pending) { a.answer(&javamethods.Affected{}) }, agentcontrol.Refused, "matches no class or method"},
			{func(a *pending) { a.end <- javamethods.ErrUnsupported }, agentcontrol.Refused, "does not support"},
			{func(a *pending) { a.end <- fmt.Errorf("%w: no such class", javamethods.ErrRefused) }, agentcontrol.Refused, "no such class"},
			{func(a *pending) { a.end <- errors.New("the connection broke") }, agentcontrol.Lost, "the connection broke"},
			{func(a *pending) { a.end <- nil }, agentcontrol.Lost, "the server ended the command before its limit"},
		} {
			starting := s.order("stack", on("demo.Pay", "*"))
			c.end(s.expect("Stack demo.Pay * 100"))
			expectReason(t, starting, c.reason, c.text)
			s.Await("the list", func() bool { return len(s.mustDo("list", nil).Items) == 1 })
		}
		s.expectNothing()
		assert.Equal(t, 1, s.bed.receiver.servers[0].TaskCount())
	})
}

func TestAnEndedTaskIsReset(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol Protocol) {
		s, monitor := newSteering(t, protocol)
		starting := s.order("stack", on("other.Pay", "*"))
		stack := s.expect("Stack other.Pay * 100")
		stack.answer(affectedOne)
		number := numberOf(t, mustDone(t, starting))
		s.newCommands()
		answer := s.mustDo("end", number)
		<-stack.over
		commands := s.newCommands()
		if protocol == ProtocolConsole {
			assert.Equal(t, "ended; a reset restores its classes when no other command needs them, or with the command reset", answer.Message)
			assert.Equal(t, []string{"ended Stack other.Pay * 100"}, commands)
		} else {
			assert.Equal(t, "ended", answer.Message)
			assert.Equal(t, []string{"ended Stack other.Pay * 100", "Reset other.Pay"}, commands)
		}
		assert.Len(t, s.mustDo("list", nil).Items, 1)
		s.expectNothing()
		// The end of the last task restores the classes, on the console too.
		assert.Equal(t, "ended", s.mustDo("end", arguments{"task": "1"}).Message)
		<-monitor.over
		assert.Len(t, resets(s.newCommands()), 1)
		assert.Equal(t, []string{"1 monitor demo.Shop *, cycles of 1s, configured: ended"}, s.mustDo("list", nil).Items)
		s.expectNothing()
		s.Shutdown()
		assert.Empty(t, resets(s.newCommands()), "no reset is owed")
	})
}

// The changes to a configured task also hold for the next process.
func TestOrdersHoldOverARestart(t *testing.T) {
	s, monitor := newSteering(t, ProtocolConsole)
	starting := s.order("stack", on("demo.Pay", "*"))
	stack := s.expect("Stack demo.Pay * 100")
	stack.answer(affectedOne)
	mustDone(t, starting)
	s.mustDo("end", arguments{"task": "1"})
	<-monitor.over
	s.set(func() { s.pid++ })
	stack.end <- errors.New("the connection broke")
	again := s.expect("Stack demo.Pay * 100")
	again.answer(affectedOne)
	s.expectNothing()
	// It is started again, with the new cycle.
	starting = s.order("monitor", arguments{"class": "demo.Shop", "method": "*", "cycle": "5"})
	monitor = s.expect("Monitor demo.Shop * 5s")
	monitor.answer(affectedOne)
	assert.Equal(t, arguments{"task": "1"}, numberOf(t, mustDone(t, starting)))
	s.set(func() { s.pid++ })
	monitor.end <- errors.New("the connection broke")
	assert.Len(t, s.byPattern(2), 2)
	assert.Contains(t, s.mustDo("list", nil).Items[0], "1 monitor demo.Shop *, cycles of 5s, configured: running")
}

// A failed start does not change the configured task.
func TestAFailedStartChangesNothing(t *testing.T) {
	s, monitor := newSteering(t, ProtocolConsole)
	s.mustDo("end", arguments{"task": "1"})
	<-monitor.over
	starting := s.order("monitor", arguments{"class": "demo.Shop", "method": "*", "cycle": "5"})
	s.expect("Monitor demo.Shop * 5s").answer(&javamethods.Affected{})
	expectReason(t, starting, agentcontrol.Refused, "matches no class")
	assert.Equal(t, []string{"1 monitor demo.Shop *, cycles of 1s, configured: ended"}, s.mustDo("list", nil).Items)
	s.expectNothing()
}

func TestALostTaskIsSentAgain(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol Protocol) {
		s, monitor := newSteering(t, protocol)
		starting := s.order("stack", on("demo.Pay", "*"))
		stack := s.expect("Stack demo.Pay * 100")
		stack.answer(affectedOne, &javamethods.CallStack{Frames: []javamethods.Frame{{Class: "demo.Pay", Method: "charge"}}})
		mustDone(t, starting)
		if protocol == ProtocolGP {
			s.set(func() { close(s.lost) })
		} else {
			stack.end <- errors.New("the connection broke")
			monitor.end <- errors.New("the connection broke")
		}
		again := s.byPattern(2)["demo.Pay"]
		assert.Equal(t, "Stack demo.Pay * 99", describe(again.command), "the rest of the limit")
		s.Shutdown()
		assert.NotEmpty(t, resets(s.newCommands()))
	})
}

func TestAResetOrderRestoresAllClassesAndCommandsContinue(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol Protocol) {
		s, monitor := newSteering(t, protocol)
		s.newCommands()
		assert.Equal(t, "the classes are restored", s.mustDo("reset", nil).Message)
		<-monitor.over
		again := s.expect("Monitor demo.Shop * 1s")
		commands := s.newCommands()
		assert.Equal(t, "ended Monitor demo.Shop * 1s", commands[0])
		if protocol == ProtocolConsole {
			assert.Len(t, resets(commands), 1, "one reset affects all classes")
		} else {
			assert.Equal(t, []string{"Reset *", "Reset demo.Shop"}, resets(commands))
		}
		again.answer(affectedOne)
		assert.Contains(t, s.mustDo("list", nil).Items[0], "running")
	})
}

func TestAFailedResetOrderIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		reason agentcontrol.Reason
	}{
		"lost":    {errors.New("the connection broke"), agentcontrol.NoAnswer},
		"refused": {fmt.Errorf("%w: the connection broke", javamethods.ErrRefused), agentcontrol.Refused},
	} {
		t.Run(name, func(t *testing.T) {
			s, monitor := newSteering(t, ProtocolGP, func(c *Config) {
				c.Reconnect = RetryConfig{InitialInterval: time.Hour, MaxInterval: time.Hour}
			})
			fails := true
			s.set(func() {
				s.refuse = func(command javamethods.Command) error {
					if reset, is := command.(javamethods.ResetCommand); is && reset.Class.String() == "other.*" && fails {
						fails = false
						return c.err
					}
					return nil
				}
			})
			expectReason(t, s.order("reset", arguments{"class": "other.*"}), c.reason, "the connection broke")
			<-monitor.over
			s.expect("Monitor demo.Shop * 1s").answer(affectedOne)
		})
	}
}

func TestAnOrderFailsIfTheServerIsLost(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol Protocol) {
		s, monitor := newSteering(t, protocol, func(c *Config) {
			c.Reconnect = RetryConfig{InitialInterval: time.Hour, MaxInterval: time.Hour}
		})
		starting := s.order("stack", on("demo.Pay", "*"))
		stack := s.expect("Stack demo.Pay * 100")
		s.unreachable(s.bed, monitor)
		if protocol == ProtocolConsole {
			stack.end <- errors.New("the connection broke")
		}
		expectReason(t, starting, agentcontrol.Lost, "")
		assert.Equal(t, "unreached", s.theirs.Snapshot().State)
		expectReason(t, s.order("list", nil), agentcontrol.Lost, "the server cannot be reached, or was lost, and the receiver tries again")
		assert.Equal(t, 1, s.bed.receiver.servers[0].TaskCount())
	})
}

func TestAGivenUpServerReceivesNoOrders(t *testing.T) {
	s := newUnstartedSteering(t, ProtocolGP)
	s.refuse = func(javamethods.Command) error { return &gp.VersionError{Ours: 1} }
	s.start()
	s.theirs = s.only()
	expectReason(t, s.order("list", nil), agentcontrol.Lost, "the receiver does not send commands to the server any more")
	assert.Equal(t, "given_up", s.theirs.Snapshot().State)
}

func TestAnOrderWithoutAReplyTimesOut(t *testing.T) {
	s, _ := newSteering(t, ProtocolConsole)
	ctx, giveUp := context.WithCancel(t.Context())
	starting := beginOrder(ctx, s.theirs, "stack", on("demo.Pay", "*"))
	stack := s.expect("Stack demo.Pay * 100")
	giveUp()
	expectReason(t, starting, agentcontrol.NoAnswer, "no result yet")
	// The command continues with later answers.
	stack.answer(affectedOne)
	assert.Contains(t, s.mustDo("list", nil).Items[1], "2 stack demo.Pay *, 100 calls: running")
}

func TestSimultaneousOrders(t *testing.T) {
	s, _ := newSteering(t, ProtocolConsole)
	one, two := s.order("stack", on("demo.Pay", "*")), s.order("stack", on("demo.Pay", "*"))
	s.expect("Stack demo.Pay * 100").answer(affectedOne)
	assert.ElementsMatch(t, []string{"started", "this task exists already"}, []string{mustDone(t, one).Message, mustDone(t, two).Message})
	s.expectNothing()
	// One order ends the task whose start the other one waits for.
	starting := s.order("trace", on("demo.Pay", "*"))
	trace := s.expect("Trace demo.Pay * 100")
	s.mustDo("end", arguments{"task": "3"})
	<-trace.over
	expectReason(t, starting, agentcontrol.Lost, "another operator has ended the task")
	// One order resets while the other one waits for a start: the command is sent again.
	starting = s.order("trace", on("demo.Pay", "*"))
	trace = s.expect("Trace demo.Pay * 100")
	s.mustDo("reset", nil)
	<-trace.over
	for range 3 {
		s.scripted.next().answer(affectedOne)
	}
	mustDone(t, starting)
}

func TestAShutdownEndsOrders(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol Protocol) {
		s, _ := newSteering(t, protocol)
		starting := s.order("stack", on("demo.Pay", "*"))
		s.expect("Stack demo.Pay * 100").answer(&javamethods.CallStack{})
		mustDone(t, starting)
		waiting := s.order("trace", on("demo.Pay", "*"))
		s.expect("Trace demo.Pay * 100")
		s.newCommands()
		s.Shutdown()
		expectReason(t, waiting, agentcontrol.Lost, "the receiver is disconnecting from the server")
		expectReason(t, s.order("list", nil), agentcontrol.Lost, "the receiver is disconnecting from the server")
		assert.Empty(t, s.Host.(*agentcontroltest.Directory).Agents())
		commands := s.newCommands()
		assert.Subset(t, commands, []string{"ended Stack demo.Pay * 100", "ended Trace demo.Pay * 100", "ended Monitor demo.Shop * 1s"})
		assert.NotEmpty(t, resets(commands), "the classes are restored")
	})
}

// Other monitors count the methods of an ended monitor, from the first cycle that it has not counted.
func TestOtherMonitorsCountTheMethodsOfAnEndedMonitor(t *testing.T) {
	s, first := newSteering(t, ProtocolConsole)
	starting := s.order("monitor", arguments{"class": "demo.*", "method": "*", "cycle": "10"})
	second := s.expect("Monitor demo.* * 10s")
	second.answer(affectedOne)
	mustDone(t, starting)
	first.answer(table(row(11, "demo.Shop", "checkout", 1, 0, ms(1))), table(row(12, "demo.Shop", "checkout", 2, 0, ms(1))))
	s.mustDo("end", arguments{"task": "1"})
	<-first.over
	// The cycle from second 5 to 15 is counted up to 12. The cycle from 15 to 25 is not counted yet.
	second.answer(table(row(15, "demo.Shop", "checkout", 40, 0, ms(1))), table(row(25, "demo.Shop", "checkout", 5, 0, ms(1))))
	assert.Equal(t, map[string]float64{"demo.Shop.checkout": 8}, values(s.collect(), "java.method.calls"))
	assert.EqualValues(t, 1, s.point("rows_ignored"))
}

// By GP the list has the recorded calls of all clients.
func TestByGPRecordedCallsAreReadFromTheList(t *testing.T) {
	s, _ := newSteering(t, ProtocolGP, func(c *Config) { c.GP.RecordsInterval = 10 * time.Millisecond })
	s.expectNothing()
	starting := s.order("tt", arguments{"class": "demo.Pay", "method": "*", "limit": "1"})
	list := s.expect("Records")
	list.answer(&javamethods.Record{Index: 1, Class: "demo.Shop", Method: "checkout"})
	assert.Empty(t, starting, "the list has not ended")
	list.end <- nil
	assert.Equal(t, arguments{"task": "2"}, numberOf(t, mustDone(t, starting)))
	list = s.expect("Records")
	assert.Contains(t, s.mustDo("list", nil).Items[1], "read from the server's list, 0 calls received")
	list.answer(&javamethods.Record{Index: 2, Class: "demo.Pay", Method: "charge"}, &javamethods.Record{Index: 3, Class: "demo.Pay", Method: "charge"})
	list.end <- nil
	s.Await("the span", func() bool { return len(s.Spans()) == 1 })
	s.Await("the task to be over", func() bool { return len(s.mustDo("list", nil).Items) == 1 })
	s.expectNothing()
	// The list is requested again for a new order, and not after the server does not support it.
	starting = s.order("tt", on("demo.Pay", "*"))
	s.expect("Records").end <- javamethods.ErrUnsupported
	expectReason(t, starting, agentcontrol.Refused, "does not support")
	expectReason(t, s.order("tt", on("demo.Pay", "*")), agentcontrol.Refused, "does not support")
	assert.Len(t, s.mustDo("list", nil).Items, 1)
}

func TestByGPRecordedCallsOfAnEndedTaskAreDropped(t *testing.T) {
	s := newUnstartedSteering(t, ProtocolGP, func(c *Config) {
		c.Monitors, c.Records = nil, []CallsConfig{some("demo.Pay", "*", 0)}
		c.GP.RecordsInterval = 10 * time.Millisecond
	})
	s.start()
	s.theirs = s.only()
	list := s.expect("Records")
	assert.Equal(t, "ended", s.mustDo("end", arguments{"task": "1"}).Message)
	list.answer(&javamethods.Record{Index: 1, Class: "demo.Pay", Method: "charge"})
	list.end <- nil
	s.expectNothing()
	assert.Empty(t, s.Spans())
	assert.Contains(t, s.mustDo("list", nil).Items[0], "configured: ended")
}

func TestATaskWithoutAPipelineCannotBeStarted(t *testing.T) {
	for name, c := range map[string]struct {
		next func(b *bed) sharedreceiver.Signals
		want []string
	}{
		"metrics": {func(b *bed) sharedreceiver.Signals { return sharedreceiver.Signals{Metrics: b.Metrics} }, []string{"monitor"}},
		"traces":  {func(b *bed) sharedreceiver.Signals { return sharedreceiver.Signals{Traces: b.Traces} }, []string{"trace", "tt"}},
		"logs":    {func(b *bed) sharedreceiver.Signals { return sharedreceiver.Signals{Logs: b.Logs} }, []string{"stack"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newUnstartedSteering(t, ProtocolConsole)
			s.bed.Next = c.next(s.bed)
			s.start()
			var names []string
			for _, command := range s.only().Snapshot().Commands {
				names = append(names, command.Name)
			}
			assert.Equal(t, append(c.want, "list", "end", "reset"), names)
		})
	}
}

// Arguments show whether a command may stop the program.
func TestCommandsThatMayStopTheProgramAreDisruptive(t *testing.T) {
	s, _ := newSteering(t, ProtocolConsole)
	for _, c := range []struct {
		command string
		written arguments
		want    string
	}{
		{"monitor", on("com.example.*", "*"), ""},
		{"monitor", on("*Shop", "*"), ""},
		{"monitor", on("*.shop.*Shop**", "*"), ""},
		{"monitor", on("*?*?*?*q", "*"), "monitor with class=*?*?*?*q"},
		{"trace", on("demo.Shop", "*?*?*?*q"), "trace with method=*?*?*?*q"},
		{"monitor", on("*", "charge"), "monitor with class=*"},
		{"trace", on("?*.*", "charge"), "trace with class=?*.*"},
		{"stack", on("*$*", "charge"), "stack with class=*$*"},
		{"tt", on("*", "charge"), "tt with class=*"},
		{"stack", arguments{"class": "demo", "method": "x", "regexp": "true"}, "stack with regexp=true"},
		{"stack", arguments{"class": "demo", "method": "x", "regexp": "false", "limit": "-1"}, ""},
		{"tt", arguments{"class": "demo", "method": "x", "limit": "1000"}, ""},
		{"tt", arguments{"class": "demo", "method": "x", "limit": "0"}, ""},
		{"tt", arguments{"class": "demo", "method": "x", "limit": "1001"}, "tt with limit=1001"},
		{"tt", arguments{"class": "demo", "method": "x", "limit": "-1"}, "tt with limit=-1"},
		{"list", nil, ""},
		{"end", arguments{"task": "1"}, ""},
		{"reset", nil, ""},
		{"reset", arguments{"class": "*"}, ""},
		{"reset", arguments{"class": "*?*?*?*q"}, "reset with class=*?*?*?*q"},
		{"reset", arguments{"class": ".*", "regexp": "true"}, "reset with regexp=true"},
	} {
		command, err := agentcontrol.Find(s.theirs.Snapshot().Commands, c.command)
		require.NoError(t, err)
		arguments, err := command.Parse(c.written)
		require.NoError(t, err)
		assert.Equal(t, c.want, command.Disruption(arguments), "%s %v", c.command, c.written)
	}
}

func TestTheSnapshotShowsTheServer(t *testing.T) {
	s, monitor := newSteering(t, ProtocolConsole, func(c *Config) { c.ServiceName = "shop" })
	monitor.answer(table(row(1, "demo.Shop", "checkout", 1, 0, ms(1))))
	now := s.theirs.Snapshot()
	assert.False(t, now.Since.IsZero())
	assert.False(t, now.LastSeen.Before(now.Since))
	now.Since, now.LastSeen, now.Commands = time.Time{}, time.Time{}, nil
	assert.Equal(t, agentcontrol.Snapshot{
		Tracer: "greys", Receiver: "greys/" + s.bed.Settings.ID.Name(), Service: "shop", Address: "shop.example:3658",
		Process: agentcontrol.Process{PID: 4711}, State: "connected",
		Counters: []agentcontrol.Counter{
			{Name: "commands running", Unit: "{command}", Value: 1},
			{Name: "replies", Unit: "{reply}", Value: 2},
			{Name: "bad replies", Unit: "{reply}"},
			{Name: "missing replies", Unit: "{reply}"},
			{Name: "reconnects", Unit: "{connection}"},
		},
	}, now)
	s.theirs.SendRecord(agentcontrol.Record{Agent: s.theirs.ID(), Order: agentcontrol.Order{Command: "list", By: "alice"}, Message: "done"})
	s.Await("the record", func() bool { return len(s.Records(agentcontrol.EventName)) == 1 })
	r := s.Records(agentcontrol.EventName)[0]
	assert.Equal(t, "Command list: done", r.Body().Str())
	by, _ := r.Attributes().Get(agentcontrol.AttributeBy)
	assert.Equal(t, "alice", by.Str())
}

func TestTheSnapshotShowsAnUnreachedServer(t *testing.T) {
	for want, set := range map[string]func(*Config){
		"shop":                 func(c *Config) { c.Servers[0].ServiceName, c.ServiceName = "shop", "all" },
		"all":                  func(c *Config) { c.ServiceName = "all" },
		"attributed":           func(c *Config) { c.ResourceAttributes = map[string]any{"service.name": "attributed"} },
		"unknown_service:java": func(*Config) {},
	} {
		t.Run(want, func(t *testing.T) { neverReached(t, want, set) })
	}
}

func neverReached(t *testing.T, want string, set func(*Config)) {
	s := newUnstartedSteering(t, ProtocolConsole, set)
	s.gone = errors.New("connection refused")
	s.start()
	s.theirs = s.only()
	expectReason(t, s.order("list", nil), agentcontrol.Lost, "connection refused")
	now := s.theirs.Snapshot()
	assert.Equal(t, want, now.Service)
	assert.Zero(t, now.Since)
	assert.Empty(t, now.Counters)
	s.theirs.SendRecord(agentcontrol.Record{})
	s.Await("the record", func() bool { return len(s.Records(agentcontrol.EventName)) == 1 })
	service, _ := s.Logs.AllLogs()[0].ResourceLogs().At(0).Resource().Attributes().Get("service.name")
	assert.Equal(t, want, service.Str())
}

// A receiver may have no configured tasks if operators can start some.
func TestAServerWithoutConfiguredTasksIsSteered(t *testing.T) {
	nothing := func(c *Config) { c.Monitors = nil }
	s := newUnstartedSteering(t, ProtocolConsole, nothing)
	s.start()
	s.theirs = s.only()
	assert.Empty(t, s.mustDo("list", nil).Items)
	starting := s.order("stack", on("demo.Pay", "*"))
	s.expect("Stack demo.Pay * 100").answer(affectedOne)
	mustDone(t, starting)

	err := newBed(t, nothing).Component().Start(t.Context(), componenttest.NewNopHost())
	require.ErrorContains(t, err, "monitors, traces, stacks, tt, classes and methods are empty: set one of them")
	assert.ErrorContains(t, err, "agent_control")
}

func TestWithoutTheExtensionNoServerIsRegistered(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Monitors = []MonitorConfig{monitor("demo.Shop", "*")} })
	script(t, b, ProtocolConsole)
	b.start()
	assert.Empty(t, b.receiver.unregister)
}

// This test uses simulated servers with sockets.
func TestSimulatedServersAreSteered(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol Protocol) {
		played := play(t, greysserver.Options{Protocol: greysserver.Protocol(protocol), Program: greysserver.ProgramOptions{Rate: 1000}, Speed: 1})
		b := following(t, func(c *Config) {
			c.Protocol = protocol
			c.Methods = []MethodsConfig{{TargetConfig: TargetConfig{Class: "com.example.*", Method: "*"}}}
		}, played)
		b.Host = &agentcontroltest.Directory{}
		b.start()
		a := b.only()
		do := func(command string, written arguments) agentcontrol.Answer {
			t.Helper()
			return mustDone(t, beginOrder(t.Context(), a, command, written))
		}
		b.Await("the connection", func() bool { return a.Snapshot().State == "connected" })
		monitor := do("monitor", arguments{"class": "com.example.*", "method": "*", "cycle": "1"})
		do("stack", arguments{"class": "com.example.shop.Service1", "method": "*", "limit": "3"})
		b.Await("the started task", func() bool {
			return len(b.Records("greys.stack")) == 3 && len(do("list", nil).Items) == 1 && len(b.sums()) == 1
		})
		assert.Positive(t, played.Lives()[0].Enhanced)
		do("end", numberOf(t, monitor))
		assert.Zero(t, played.Lives()[0].Enhanced, "the classes are restored")
		do("monitor", arguments{"class": "com.example.*", "method": "*", "cycle": "1"})
		do("reset", nil)
		b.Await("the monitor to be sent again", func() bool { return played.Lives()[0].Enhanced == 10 })
		b.Shutdown()
		assert.Zero(t, played.Lives()[0].Enhanced, "the classes are restored")
	})
}
