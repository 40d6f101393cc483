// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest/observer"

	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/greys/gp"
	"github.com/callbraid/callbraid/internal/greys/sim/greysserver"
	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/javamethods/session"
	"github.com/callbraid/callbraid/internal/receiverkit/sharedreceiver"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/link"
)

func TestSumsSurviveALostCommandAndBeginAtZeroWithAnotherProcess(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Monitors = []MonitorConfig{monitor("demo.*", "*")} })
	s := script(t, b, ProtocolConsole)
	b.start()
	a := s.expect("Monitor demo.* * 1s")
	a.answer(affectedOne, table(), table(row(1, "demo.Shop", "checkout", 10, 2, 4*time.Millisecond)),
		table(row(2, "demo.Shop", "checkout", 5, 0, 8*time.Millisecond), row(2, "demo.Pay", "charge", 1, 0, time.Millisecond)))
	metrics := b.collect()
	assert.Equal(t, map[string]float64{"demo.Shop.checkout": 15, "demo.Pay.charge": 1}, values(metrics, "java.method.calls"))
	assert.Equal(t, map[string]float64{"demo.Shop.checkout": 2, "demo.Pay.charge": 0}, values(metrics, "java.method.failures"))
	assert.InDelta(t, 0.08, values(metrics, "java.method.time")["demo.Shop.checkout"], 1e-9)
	assert.Equal(t, map[string]float64{"demo.Shop.checkout": 0.008, "demo.Pay.charge": 0.001}, values(metrics, "java.method.duration.mean"))
	assert.Equal(t, 0.004, values(metrics, "java.method.duration.min")["demo.Shop.checkout"])
	assert.Equal(t, 0.016, values(metrics, "java.method.duration.max")["demo.Shop.checkout"])
	assert.Equal(t, map[string]float64{"monitor demo.* *": 1}, values(metrics, "greys.matched.classes"))
	assert.Equal(t, map[string]float64{"monitor demo.* *": 2}, values(metrics, "greys.matched.methods"))
	assert.Empty(t, values(metrics, "greys.session.count"), "the console reports only the client's own session")

	a.end <- errors.New("the connection broke")
	a = s.expect("Monitor demo.* * 1s")
	a.answer(affectedOne, table(row(3, "demo.Shop", "checkout", 1, 1, time.Millisecond)))
	metrics = b.collect()
	assert.Equal(t, 16.0, values(metrics, "java.method.calls")["demo.Shop.checkout"])
	assert.Equal(t, 3.0, values(metrics, "java.method.failures")["demo.Shop.checkout"])
	assert.Equal(t, 1.0, values(metrics, "java.method.failure_ratio")["demo.Shop.checkout"])
	assert.Equal(t, map[string]float64{"": 1}, values(metrics, "greys.reconnects"))

	s.set(func() { s.pid = 4712 })
	a.end <- errors.New("the connection broke")
	a = s.expect("Monitor demo.* * 1s")
	a.answer(affectedOne, table(row(1, "demo.Shop", "checkout", 7, 0, time.Millisecond)))
	metrics = b.collect()
	assert.Equal(t, map[string]float64{"demo.Shop.checkout": 7}, values(metrics, "java.method.calls"))
	pid, _ := metrics.ResourceMetrics().At(0).Resource().Attributes().Get("process.pid")
	assert.EqualValues(t, 4712, pid.Int())
	b.Await("the record", func() bool { return len(b.Records("greys.server.restarted")) == 1 })
	assert.EqualValues(t, 1, b.point("restarts"))
	assert.EqualValues(t, 2, b.point("commands{outcome=lost}"))
	b.Shutdown()
	assert.Equal(t, map[int64][2]int64{4711: {17, 3}, 4712: {7, 0}}, b.sums(), "the last sums of the first process are forwarded, too")
}

func TestALimitIsForTheLifeOfTheProcess(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.Traces = []CallsConfig{some("demo.Shop", "checkout", 3)}
		c.Stacks = []CallsConfig{some("demo.Shop", "price", -1)}
	})
	s := script(t, b, ProtocolConsole)
	b.start()
	first, second := s.next(), s.next()
	if _, is := first.command.(javamethods.StackCommand); is {
		first, second = second, first
	}
	assert.Equal(t, "Trace demo.Shop checkout 3", describe(first.command))
	assert.Equal(t, "Stack demo.Shop price 0", describe(second.command))
	first.answer(affectedOne, callTree(), callTree())
	first.end <- errors.New("the connection broke")
	// The receiver requests the rest of the limit.
	first = s.expect("Trace demo.Shop checkout 1")
	first.answer(affectedOne, callTree())
	first.end <- nil
	b.awaitLogged("A command has reached its limit")
	// A command without a limit does not end by itself.
	second.end <- nil
	second = s.expect("Stack demo.Shop price 0")
	assert.Empty(t, s.asked)
	b.Await("the spans", func() bool { return len(b.Spans()) == 3 })

	// Another process has its own limit.
	s.set(func() { s.pid++ })
	second.end <- javamethods.ErrSessionTimedOut
	names := []string{describe(s.next().command), describe(s.next().command)}
	assert.ElementsMatch(t, []string{"Trace demo.Shop checkout 3", "Stack demo.Shop price 0"}, names)
	b.Await("the record", func() bool { return len(b.Records("greys.session.timed_out")) == 1 })
}

func TestRepliesBeyondTheLimitAreDropped(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Traces = []CallsConfig{some("demo.Shop", "checkout", 2)} })
	s := script(t, b, ProtocolConsole)
	b.start()
	a := s.expect("Trace demo.Shop checkout 2")
	a.answer(affectedOne, callTree(), callTree(), callTree(), callTree())
	b.awaitLogged("A command has reached its limit")
	b.Shutdown()
	assert.Len(t, b.Spans(), 2)
	assert.EqualValues(t, 1, b.point("commands{outcome=ended}"))
}

func TestAnUnsupportedCommandIsLoggedOnce(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.Traces = []CallsConfig{some("demo.Shop", "*", 0)}
		c.Monitors = []MonitorConfig{monitor("demo.Shop", "*")}
	})
	s := script(t, b, ProtocolGP)
	s.refuse = func(c javamethods.Command) error {
		if _, is := c.(javamethods.TraceCommand); is {
			return javamethods.ErrUnsupported
		}
		return nil
	}
	b.start()
	a := s.expect("Monitor demo.Shop * 1s")
	b.awaitLogged("The server does not support a command")
	// It is not sent again when the server returns.
	close(s.lost)
	<-a.over
	s.expect("Monitor demo.Shop * 1s")
	b.Shutdown()
	assert.Equal(t, 1, b.Log.FilterMessageSnippet("The server does not support a command").Len())
	assert.Len(t, b.Records("greys.command.unsupported"), 1)
	assert.EqualValues(t, 1, b.point("commands{outcome=unsupported}"))
	assert.Len(t, b.Records("greys.server.connected"), 2)
	gone := b.Records("greys.server.gone")
	require.Len(t, gone, 2)
	assert.Equal(t, "Warn The server is gone", gone[0].SeverityText()+" "+gone[0].Body().Str())
	assert.Equal(t, "Info The server is no longer asked", gone[1].SeverityText()+" "+gone[1].Body().Str(), "nothing is wrong at a shutdown")
}

func TestARefusedCommandIsSentAgain(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Stacks = []CallsConfig{some("demo.Shop", "*", 0)} })
	s := script(t, b, ProtocolConsole)
	s.refuse = func(c javamethods.Command) error {
		if _, is := c.(javamethods.VersionCommand); is {
			return javamethods.ErrUnsupported // the process stays unknown
		}
		return nil
	}
	b.start()
	s.next().end <- javamethods.ErrRefused
	s.next().end <- javamethods.ErrRefused
	s.next()
	b.awaitLogged("The server could not carry out a command")
	assert.Equal(t, 1, b.Log.FilterMessageSnippet("The server could not carry out a command").Len())
	assert.EqualValues(t, 2, b.point("commands{outcome=refused}"))
}

func TestAPatternWithoutAMatchIsLoggedOnceAndSentAgain(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Monitors = []MonitorConfig{monitor("demo.Later", "*")} })
	s := script(t, b, ProtocolConsole)
	b.start()
	for range 2 {
		s.expect("Monitor demo.Later * 1s").answer(&javamethods.Affected{})
	}
	a := s.expect("Monitor demo.Later * 1s")
	a.answer(affectedOne)
	b.Await("the record", func() bool { return len(b.Records("greys.pattern.unmatched")) == 1 })
	assert.EqualValues(t, 2, b.point("commands{outcome=unmatched}"))
	b.Shutdown()
	assert.Len(t, b.Records("greys.pattern.unmatched"), 1)
	for _, text := range s.newCommands() {
		assert.NotEqual(t, "Reset demo.Later", text[:min(len(text), 3)])
	}
}

// GP cannot end a command: one without a match is abandoned, and sent again.
func TestByGPAPatternWithoutAMatchIsSentAgain(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Monitors = []MonitorConfig{monitor("demo.Later", "*")} })
	s := script(t, b, ProtocolGP)
	b.start()
	s.expect("Monitor demo.Later * 1s").answer(&javamethods.Affected{})
	s.expect("Monitor demo.Later * 1s").answer(&javamethods.Affected{})
	a := s.expect("Monitor demo.Later * 1s")
	a.answer(affectedOne, table(row(1, "demo.Later", "on", 1, 0, time.Millisecond)))
	b.Await("the record", func() bool { return len(b.Records("greys.pattern.unmatched")) == 1 })
	assert.Equal(t, 1, s.links)
	metrics := b.collect()
	assert.Equal(t, map[string]float64{"demo.Later.on": 1}, values(metrics, "java.method.calls"))
	assert.Equal(t, map[string]float64{"": 3}, values(metrics, "greys.session.count"))
}

// phase returns the phase of the first server.
func (b *bed) phase() string { return b.receiver.servers[0].Phase() }

func TestAnUnreachableServerIsTriedAgain(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Monitors = []MonitorConfig{monitor("demo.*", "*")} })
	s := script(t, b, ProtocolConsole)
	s.gone = errors.New("connection refused")
	b.start()
	b.awaitLogged("The server cannot be reached")
	b.Await("two tries", func() bool { return b.point("connection_failures") > 1 })
	assert.Equal(t, 1, b.Log.FilterMessageSnippet("The server cannot be reached").Len())
	s.set(func() { s.gone = nil })
	a := s.expect("Monitor demo.* * 1s")
	assert.Equal(t, "connected", b.phase())
	assert.EqualValues(t, 1, b.point("servers"))

	// A command is lost, and then the server cannot be reached for its identity.
	s.set(func() { s.gone = errors.New("connection refused") })
	a.end <- errors.New("the connection broke")
	b.Await("the server to be lost", func() bool { return b.point("servers") == 0 })
	s.set(func() { s.gone = nil })
	s.expect("Monitor demo.* * 1s")
}

func TestAShutdownEndsCommandsAndResetsClasses(t *testing.T) {
	for _, protocol := range []Protocol{ProtocolConsole, ProtocolGP} {
		b := newBed(t, func(c *Config) { c.Monitors = []MonitorConfig{monitor("demo.*", "*")} })
		s := script(t, b, protocol)
		require.NoError(t, b.Component().Start(t.Context(), b.Host))
		a := s.next()
		b.Shutdown()
		<-a.over
		assert.Equal(t, []string{"Monitor demo.* * 1s", "ended Monitor demo.* * 1s", "Reset demo.*"}, s.newCommands())
		b.Shutdown()
		assert.EqualValues(t, 1, b.point("commands{outcome=stopped}"))
	}
}

func TestTheCountsOfALinkAreReported(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Monitors = []MonitorConfig{monitor("demo.*", "*")} })
	s := script(t, b, ProtocolGP)
	b.start()
	s.next()
	s.set(func() {
		s.stats = session.Stats{
			Bad: 3, LastBad: errors.New("monitor demo.* *: byte 7: the reason"), Missing: 5,
			Repeated: 11, Unasked: 12, Late: 13, Lost: 14, Unanswered: 15,
		}
	})
	close(s.lost)
	s.next()
	b.Await("the counts", func() bool { return b.point("bad_replies") > 0 })
	metrics := b.collect()
	assert.GreaterOrEqual(t, values(metrics, "greys.replies.bad")[""], 3.0)
	assert.GreaterOrEqual(t, values(metrics, "greys.replies.missing")[""], 5.0)
	points := b.Points()
	for name, at := range map[string]int64{
		"replies_ignored{reason=repeated}": 11, "replies_ignored{reason=unasked}": 12, "replies_ignored{reason=late}": 13,
		"console_faults{kind=lost}": 14, "console_faults{kind=unanswered}": 15,
	} {
		assert.GreaterOrEqual(t, points[name], at, name)
	}
	line := b.awaitLogged("A reply could not be decoded")
	assert.Equal(t, "monitor demo.* *: byte 7: the reason", line.ContextMap()["error"])
	assert.EqualValues(t, 3, line.ContextMap()["bad_replies_of_connection"])
}

// A burst of invalid answers has one log line, with the position in the last one.
func TestInvalidAnswersAreLoggedOnce(t *testing.T) {
	server := play(t, greysserver.Options{
		Program: greysserver.ProgramOptions{Rate: 300, Classes: 3, Methods: 3},
		Faults:  []greysserver.Fault{greysserver.BrokenData}, FaultEvery: 5,
	})
	b := following(t, func(c *Config) {
		c.Protocol = ProtocolGP
		c.Monitors = []MonitorConfig{monitor("com.example.*", "*")}
	}, server).start()
	line := b.awaitLogged("A reply could not be decoded")
	assert.Regexp(t, `^\w+( com\.example\.\* \*)?: (the data, read as YAML: )?byte \d+: expected .+, got `, line.ContextMap()["error"])
	assert.Equal(t, server.endpoint, line.ContextMap()["server"])
	bad := b.point("bad_replies")
	b.Await("more invalid answers", func() bool { return b.point("bad_replies") > bad+10 })
	since := time.Since(line.Time)
	assert.LessOrEqual(t, b.Log.FilterMessageSnippet("A reply could not be decoded").Len(), 2+int(since/logline.Pause))
}

func TestCommandsWithoutAPipelineAreNotSent(t *testing.T) {
	all := func(c *Config) {
		c.Monitors = []MonitorConfig{monitor("demo.*", "*")}
		c.Traces = []CallsConfig{some("demo.*", "*", 0)}
		c.Stacks = []CallsConfig{some("demo.*", "*", 0)}
		c.Records = []CallsConfig{some("demo.*", "*", 0)}
		c.Classes = []ClassesConfig{{Class: "demo.*"}}
	}
	for name, test := range map[string]struct {
		next func(b *bed) sharedreceiver.Signals
		want []string
	}{
		"metrics": {func(b *bed) sharedreceiver.Signals { return sharedreceiver.Signals{Metrics: b.Metrics} }, []string{"Monitor demo.* * 1s"}},
		"traces":  {func(b *bed) sharedreceiver.Signals { return sharedreceiver.Signals{Traces: b.Traces} }, []string{"Record demo.* * 100", "Trace demo.* * 100"}},
		"logs":    {func(b *bed) sharedreceiver.Signals { return sharedreceiver.Signals{Logs: b.Logs} }, []string{"Classes demo.*", "Stack demo.* * 100"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, all)
			b.Next = test.next(b)
			s := script(t, b, ProtocolConsole)
			b.start()
			var asked []string
			for range test.want {
				asked = append(asked, describe(s.next().command))
			}
			slices.Sort(asked)
			assert.Equal(t, test.want, asked)
			b.Shutdown()
			assert.Empty(t, s.asked)
		})
	}
}

func TestRepliesBeforeTheLossOfTheLinkAreHandled(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Monitors = []MonitorConfig{monitor("demo.*", "*")} })
	s := script(t, b, ProtocolGP)
	b.start()
	s.next()
	s.set(func() { s.late = table(row(1, "demo.Shop", "checkout", 7, 0, 0)) })
	close(s.lost)
	s.next()
	assert.Equal(t, map[string]float64{"demo.Shop.checkout": 7}, values(b.collect(), "java.method.calls"))
}

// The server loses each command, and reports another process at each check.
func TestAServerThatAlwaysReportsAnotherProcessIsTriedWithPauses(t *testing.T) {
	for _, protocol := range []Protocol{ProtocolConsole, ProtocolGP} {
		t.Run(string(protocol), func(t *testing.T) {
			b := newBed(t, func(c *Config) {
				c.Monitors = []MonitorConfig{monitor("demo.*", "*")}
				c.Classes = []ClassesConfig{{Class: "demo.*"}}
				c.Reconnect = RetryConfig{InitialInterval: time.Hour, MaxInterval: time.Hour}
			})
			s := script(t, b, protocol)
			b.start()
			for range 2 {
				a := s.next()
				if _, is := a.command.(javamethods.ClassesCommand); is {
					a.end <- nil
					continue
				}
				s.set(func() { s.pid++ })
				a.end <- errors.New("the connection broke")
			}
			b.awaitLogged("The server was restarted")
			s.expectNothing()
			assert.EqualValues(t, 1, b.point("restarts"))
		})
	}
}

// Commands that are lost together are sent again after one identity check.
func TestCommandsLostTogetherCauseOneIdentityCheck(t *testing.T) {
	b := newBed(t, func(c *Config) {
		for i := range 20 {
			c.Stacks = append(c.Stacks, some(fmt.Sprint("demo.C", i), "*", 0))
		}
		c.Reconnect = RetryConfig{InitialInterval: time.Hour, MaxInterval: time.Hour}
	})
	s := script(t, b, ProtocolConsole)
	b.start()
	for range 20 {
		s.next().end <- errUnsent
	}
	b.Await("all to be lost", func() bool { return b.point("commands{outcome=lost}") == 20 })
	s.expectNothing()
	s.set(func() {
		asked := slices.DeleteFunc(s.said, func(text string) bool { return text != "Sessions" })
		assert.Len(t, asked, 2, "at the start, and after the first loss")
	})
}

// An invalid answer to an identity check has no effect on commands, unless several follow each other.
func TestAnInvalidIdentityDoesNotDisturbCommands(t *testing.T) {
	for _, protocol := range []Protocol{ProtocolConsole, ProtocolGP} {
		t.Run(string(protocol), func(t *testing.T) {
			b := newBed(t, func(c *Config) {
				c.Monitors = []MonitorConfig{monitor("demo.Shop", "*")}
				c.StateInterval = time.Second
			})
			s := script(t, b, protocol)
			asked, unclear := 0, 0
			s.refuse = func(c javamethods.Command) error {
				s.mu.Lock()
				defer s.mu.Unlock()
				if _, is := c.(javamethods.SessionsCommand); !is {
					return nil
				}
				if asked++; asked > 1 && unclear > 0 {
					unclear--
					return errors.New("expected a number as the session's JAVA_PID")
				}
				return nil
			}
			s.set(func() { unclear = 2 })
			b.start()
			a := s.next()
			a.answer(affectedOne)
			b.Await("a valid identity", func() bool {
				s.mu.Lock()
				defer s.mu.Unlock()
				return asked > 3
			})
			a.answer(table())
			assert.Zero(t, b.point("connection_failures"))
			s.set(func() { unclear = 3 })
			b.awaitLogged("The server cannot be reached, or was lost")
			<-a.over
		})
	}
}

func TestAnInvalidVersionStaysUnknown(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Monitors = []MonitorConfig{monitor("demo.Shop", "*")} })
	s := script(t, b, ProtocolConsole)
	s.refuse = func(c javamethods.Command) error {
		if _, is := c.(javamethods.VersionCommand); is {
			return errors.New("expected a drawing")
		}
		return nil
	}
	b.start()
	s.next()
	assert.Empty(t, b.awaitLogged("Connected to the server").ContextMap()["version"])
}

// manyAbandoned is the number of abandoned commands after which the connection ends.
const manyAbandoned = gp.DefaultMaxRequests / 2

// Abandoned commands end with the connection, before they fill the server's limit of requests.
func TestByGPManyAbandonedCommandsEndTheConnection(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.Monitors = []MonitorConfig{monitor("demo.Later", "*")}
		c.Reconnect = RetryConfig{InitialInterval: time.Millisecond, MaxInterval: time.Millisecond}
	})
	s := script(t, b, ProtocolGP)
	b.start()
	for range manyAbandoned {
		s.next().answer(&javamethods.Affected{})
	}
	b.awaitLogged("The server cannot be reached, or was lost")
	s.next()
	s.set(func() { assert.Equal(t, 2, s.links) })
	assert.Less(t, manyAbandoned+len(b.receiver.env.config.Monitors), gp.DefaultMaxRequests)
}

// A program in a container always has process ID 1.
func TestARestartWithTheSameIDIsAnotherProcess(t *testing.T) {
	for name, lose := range map[string]func(s *scripted, a *pending){
		"after a new connection": func(s *scripted, a *pending) {
			s.gone = errUnsent
			a.end <- errUnsent
		},
		"after a lost command": func(_ *scripted, a *pending) { a.end <- errors.New("the connection broke") },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, func(c *Config) {
				c.Traces = []CallsConfig{some("demo.Shop", "checkout", 1)}
				c.Monitors = []MonitorConfig{monitor("demo.Shop", "*")}
			})
			s := script(t, b, ProtocolConsole)
			s.pid = 1
			b.start()
			all := map[string]*pending{}
			for range 2 {
				a := s.next()
				all[describe(a.command)] = a
			}
			all["Trace demo.Shop checkout 1"].answer(affectedOne, callTree())
			all["Trace demo.Shop checkout 1"].end <- nil
			b.awaitLogged("A command has reached its limit")
			all["Monitor demo.Shop * 1s"].answer(affectedOne)
			// After a loss without a restart it is the same process.
			all["Monitor demo.Shop * 1s"].end <- errors.New("the connection broke")
			monitor := s.expect("Monitor demo.Shop * 1s")
			assert.Zero(t, b.point("restarts"))
			monitor.answer(affectedOne)
			s.newCommands()
			s.set(func() {
				s.session = 0
				lose(s, monitor)
			})
			if name == "after a new connection" {
				b.awaitLogged("The server cannot be reached, or was lost")
				s.set(func() { s.gone, s.session = nil, 0 })
			}
			again := []string{describe(s.next().command), describe(s.next().command)}
			assert.ElementsMatch(t, []string{"Trace demo.Shop checkout 1", "Monitor demo.Shop * 1s"}, again)
			assert.EqualValues(t, 1, b.point("restarts"))
			assert.Empty(t, resets(s.newCommands()), "a new process needs no reset")
		})
	}
}

// After a loss the receiver tries the last protocol first. A server that does not answer may have changed its protocol.
func TestAServerThatChangesItsProtocolIsFoundAgain(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Monitors = []MonitorConfig{monitor("demo.*", "*")} })
	s := script(t, b, ProtocolConsole)
	spoke := make(chan Protocol, 1000)
	refused := fmt.Errorf("connection refused: %w", errUnsent)
	var down atomic.Bool
	b.receiver.env.connect = func(_ context.Context, _ *link.Dialer, protocol Protocol) (*session.Link, error) {
		select {
		case spoke <- protocol:
		default:
		}
		if protocol == "" && down.Load() { // the receiver detects the new protocol
			return nil, refused
		}
		return s.link()
	}
	b.start()
	a := s.next()
	assert.Empty(t, <-spoke)
	down.Store(true)
	s.set(func() { s.refuse = func(javamethods.Command) error { return refused } })
	a.end <- errors.New("the connection broke")
	for _, want := range []Protocol{ProtocolConsole, ""} {
		select {
		case got := <-spoke:
			assert.Equal(t, want, got)
		case <-time.After(patience):
			t.Fatal("no agent connects")
		}
	}
	s.set(func() { s.refuse, s.protocol = nil, ProtocolGP })
	down.Store(false)
	s.next()
	b.Await("the restart to be reported", func() bool { return len(b.Records("greys.server.restarted")) == 1 })
}

// A command whose limit is reached is over, however it ends. Otherwise the rest of the limit would be 0, which means no
// limit.
func TestACommandLostAfterItsLimitIsOver(t *testing.T) {
	for _, protocol := range []Protocol{ProtocolConsole, ProtocolGP} {
		t.Run(string(protocol), func(t *testing.T) {
			b := newBed(t, func(c *Config) { c.Traces = []CallsConfig{some("demo.Shop", "*", 1)} })
			s := script(t, b, protocol)
			b.start()
			a := s.expect("Trace demo.Shop * 1")
			a.answer(affectedOne, callTree())
			a.end <- errors.New("the connection broke")
			b.awaitLogged("A command has reached its limit")
			s.expectNothing()
			b.Await("the reset", func() bool { return b.point("resets{outcome=done}") == 1 })
		})
	}
}

// The pauses grow only for a server that is lost soon, several times in a row. The commands use the new connection.
func TestALongConnectionIsFollowedByAShortPause(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.Monitors = []MonitorConfig{monitor("demo.A", "*"), monitor("demo.B", "*")}
		c.Reconnect = RetryConfig{InitialInterval: time.Millisecond, MaxInterval: time.Hour}
	})
	var later atomic.Int64
	b.receiver.env.Now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	s := script(t, b, ProtocolGP)
	s.gone = errUnsent
	b.start()
	b.Await("a pause of 64 ms at least", func() bool { return b.point("connection_failures") >= 8 })
	s.set(func() { s.gone = nil })
	s.byPattern(2)
	later.Store(int64(2 * time.Hour))
	s.set(func() {
		s.gone = errUnsent
		close(s.lost)
	})
	lines := func() []observer.LoggedEntry {
		return b.Log.FilterMessageSnippet("The server cannot be reached, or was lost").All()
	}
	b.Await("a line", func() bool { return len(lines()) >= 2 })
	assert.Less(t, lines()[1].ContextMap()["pause"], 2*time.Millisecond)
	s.set(func() { s.gone = nil })
	s.byPattern(2)
	assert.Equal(t, map[string]float64{"": 1}, values(b.collect(), "greys.reconnects"))
}

// Session numbers of a server only grow. A lower number than the last one shows a restart, even if it is higher than
// the first one.
func TestALowerSessionNumberShowsARestart(t *testing.T) {
	for name, follow := range map[string]func(b *bed, s *scripted, a *pending) *pending{
		"after many commands": func(b *bed, s *scripted, a *pending) *pending {
			b.Await("many sessions", func() bool {
				s.mu.Lock()
				defer s.mu.Unlock()
				return s.session > 20
			})
			return a
		},
		"after a new connection": func(b *bed, s *scripted, a *pending) *pending {
			s.set(func() { s.gone = errUnsent })
			a.end <- errUnsent
			b.awaitLogged("The server cannot be reached, or was lost")
			s.set(func() { s.gone, s.session = nil, 100 })
			return s.next()
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, func(c *Config) {
				c.Monitors = []MonitorConfig{monitor("demo.Shop", "*")}
				if name == "after many commands" {
					c.StateInterval = 10 * time.Millisecond
				}
			})
			s := script(t, b, ProtocolConsole)
			b.start()
			a := follow(b, s, s.next())
			assert.Zero(t, b.point("restarts"))
			s.set(func() { s.session = 5 })
			a.end <- errors.New("the connection broke") // the receiver checks the identity
			b.Await("the restart", func() bool { return b.point("restarts") == 1 })
		})
	}
}

func TestDisabledLogRecordsAreNotForwarded(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.Monitors = []MonitorConfig{monitor("demo.*", "*")}
		c.Events.GreysServerConnected.Enabled = false
	})
	s := script(t, b, ProtocolConsole)
	b.start()
	s.expect("Monitor demo.* * 1s")
	b.Shutdown()
	assert.Empty(t, b.Records("greys.server.connected"))
	assert.Len(t, b.Records("greys.server.gone"), 1)
}

func TestEachPatternHasAPointForItsMatches(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.Monitors = []MonitorConfig{monitor("demo.A", "*"), monitor("demo.B", "*")}
		c.Stacks = []CallsConfig{some("demo.A", "*", 0)}
	})
	s := script(t, b, ProtocolConsole)
	b.start()
	for range 3 {
		s.next().answer(affectedOne)
	}
	metrics := b.collect()
	assert.Equal(t, map[string]float64{"monitor demo.A *": 1, "monitor demo.B *": 1, "stack demo.A *": 1}, values(metrics, "greys.matched.classes"))
	assert.Equal(t, map[string]float64{"monitor demo.A *": 2, "monitor demo.B *": 2, "stack demo.A *": 2}, values(metrics, "greys.matched.methods"))
}
