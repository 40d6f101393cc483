// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/receiverkit/receivertestbed"
)

func impatiently(_ *bed, c *Config) {
	c.Agent.HeartbeatInterval = 20 * time.Millisecond
	c.MissedHeartbeats = 10
	c.Limits.MessageTimeout = 50 * time.Millisecond
}

// beat sends heartbeats until stop is called.
func (a *agent) beat() (stop func()) {
	halt, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(a.configuration.HeartbeatInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				_, _ = a.control.conn.Write(encode(bytefrog.Heartbeat{Mode: bytefrog.ModeTracing, SendBuffers: 3}))
			case <-halt:
				return
			}
		}
	}()
	return func() { close(halt); <-done }
}

func TestAnAgentWithoutHeartbeatsIsLost(t *testing.T) {
	b := newBed(t, quickly, impatiently)
	a := connect(b, 1)
	p := a.join()
	p.write(append(namesOne(), calls(0, 5)...))
	assert.Contains(t, a.control.expectError(), "no heartbeat for 200ms")
	a.expectToLinger(b, 2)
	s := b.only()
	assert.Len(t, s.events, 10)
	assert.Equal(t, callevent.End(10, callevent.CauseUnresponsive), s.end(t))
}

func TestAnAgentThatShutsDownNeedsNoHeartbeatsWhileThePipelineRefuses(t *testing.T) {
	b := newBed(t, quickly, impatiently, withDataConnections(1))
	b.Traces.RefuseWith(receivertestbed.ErrRefused)
	a := connect(b, 1)
	p := a.join()
	p.write(append(namesOne(), calls(0, 5)...))
	a.control.send(bytefrog.Heartbeat{Mode: bytefrog.ModeShuttingDown})
	run := b.receiver.env.registry.lookup(1)
	b.Await("a hand-over that waits", func() bool { return run.State().Waiting > 0 })
	since := time.Now()
	b.Await("more silence than an agent may have", func() bool { return time.Since(since) > 700*time.Millisecond })
	assert.False(t, run.State().Leaving)
	p.write(calls(10, 5))
	p.close()
	a.control.close()
	b.Traces.RefuseWith(nil)
	b.awaitRuns(0)
	assert.Equal(t, callevent.End(20, callevent.CauseEnded), b.only().end(t))
}

func TestAnAgentThatShutsDownNeedsNoHeartbeatsWhileItSends(t *testing.T) {
	t.Parallel()
	b := newBed(t, quickly, impatiently, func(_ *bed, c *Config) {
		c.Agent.DataConnections = 1
		// A busy machine may hold the test up for long.
		c.MissedHeartbeats = 50
	})
	a := connect(b, 1)
	p := a.join()
	p.write(namesOne())
	a.control.send(bytefrog.Heartbeat{Mode: bytefrog.ModeShuttingDown})
	run := b.receiver.env.registry.lookup(1)
	since, sent := time.Now(), uint32(0)
	b.Await("more silence than an agent may have", func() bool {
		p.write(calls(sent, 1))
		sent += 2
		return time.Since(since) > 2500*time.Millisecond
	})
	assert.False(t, run.State().Leaving)
	p.close()
	a.control.close()
	b.awaitRuns(0)
	assert.Equal(t, callevent.End(uint64(sent), callevent.CauseEnded), b.only().end(t))
}

func TestAnAgentThatShutsDownAndFallsSilentIsLost(t *testing.T) {
	b := newBed(t, quickly, impatiently, withDataConnections(1))
	a := connect(b, 1)
	p := a.join()
	p.write(append(namesOne(), calls(0, 5)...))
	a.control.send(bytefrog.Heartbeat{Mode: bytefrog.ModeShuttingDown})
	assert.Contains(t, a.control.expectError(), "no heartbeat for 200ms")
	a.expectToLinger(b, 2)
	s := b.only()
	assert.Len(t, s.events, 10)
	assert.Equal(t, callevent.End(10, callevent.CauseUnresponsive), s.end(t))
}

func TestHeartbeatsAreSeenWhileThePipelineRefuses(t *testing.T) {
	// A busy machine may hold the agent's heart up for long.
	b := newBed(t, quickly, impatiently, func(_ *bed, c *Config) { c.MissedHeartbeats = 1000 })
	b.Traces.RefuseWith(receivertestbed.ErrRefused)
	a := connect(b, 1)
	stop := a.beat()
	p := a.join()
	go func() { _, _ = p.conn.Write(append(namesOne(), calls(0, 10_000)...)) }()
	run := b.receiver.env.registry.lookup(1)
	b.Await("a connection that is held up", func() bool { return run.State().Waiting > 0 })
	before := run.State().Heartbeats
	b.Await("heartbeats", func() bool { return run.State().Heartbeats >= before+10 })
	assert.NotZero(t, run.State().Waiting)
	assert.False(t, run.State().Leaving)
	assert.EqualValues(t, 3, run.State().SendBuffers)
	b.Await("a retry", func() bool { return b.Counter("handover_retries") > 0 })
	b.Traces.RefuseWith(nil)
	b.Await("all events", func() bool { return b.events() == 20_000 })
	stop()
	a.finish()
	b.awaitRuns(0)
}

func TestInvalidControlDataEndsTheRun(t *testing.T) {
	cases := map[string]struct {
		bytes         []byte
		offset        int
		expected, got string
	}{
		"an unknown type": {[]byte{8, 'T', 0, 0, 77}, 6, "a message of a control connection", "message type 77"},
		"a call event":    {calls(0, 1), 2, "a message of a control connection", "method entry (20)"},
		"a second hello":  {encode(bytefrog.Hello{Version: 1}), 2, "a message of a control connection", "hello (0)"},
		"a break at a number that cannot be": {
			encode(bytefrog.DataBreak{Sequence: 1<<31 + 100}), 3, "a sequence number of the run", "sequence number 2147483748 where 10 is next"},
		"silence inside a message":         {[]byte{9, 0}, 4, "the rest of data break within 50ms", "nothing more"},
		"a class name longer than allowed": {append([]byte{40, 0x10, 0}, make([]byte, 10)...), 3, "a string of at most 1024 bytes", "4096"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, quickly, impatiently, func(_ *bed, c *Config) {
				c.Limits.MaxMessageSize = 1024
				c.MissedHeartbeats = 1000
			})
			a := connect(b, 1)
			p := a.join()
			p.write(append(namesOne(), calls(0, 5)...))
			b.Await("events", func() bool { return b.receiver.env.registry.lookup(1).State().Events == 10 })
			a.control.write(c.bytes)
			text := a.control.expectError()
			assert.Contains(t, text, c.got)
			a.expectToLinger(b, 2)
			lines := b.Log.FilterLevelExact(zapcore.WarnLevel).All()
			require.Len(t, lines, 1)
			said := lines[0].ContextMap()["error"].(string)
			assert.Contains(t, said, fmt.Sprintf("%s, byte %d: expected ", a.control.conn.LocalAddr(), c.offset))
			assert.Contains(t, said, c.expected)
			assert.Contains(t, said, c.got)
			s := b.only()
			assert.Len(t, s.events, 10)
			assert.Equal(t, callevent.End(10, callevent.CauseBadData), s.end(t))
		})
	}
}

func TestAnAgentThatReportsAnErrorIsLet(t *testing.T) {
	for _, where := range []string{"control", "data"} {
		t.Run(where, func(t *testing.T) {
			b := newBed(t, quickly)
			a := connect(b, 1)
			p := a.join()
			p.write(append(namesOne(), calls(0, 5)...))
			if where == "data" {
				p.send(bytefrog.ErrorMessage{Text: "no buffer"})
			} else {
				b.Await("events", func() bool { return b.receiver.env.registry.lookup(1).State().Events == 10 })
				a.control.send(bytefrog.ErrorMessage{Text: "no buffer"})
			}
			a.expectToLinger(b, 2)
			s := b.only()
			assert.Len(t, s.events, 10)
			assert.Equal(t, callevent.End(10, callevent.CauseDisconnected), s.end(t))
			b.Await("log records", func() bool { return b.logEvents()[eventAgentError] == 1 })
		})
	}
}

func TestALongErrorOfAnAgentIsCutInTheLog(t *testing.T) {
	b := newBed(t, quickly)
	a := connect(b, 1)
	a.join()
	a.control.send(bytefrog.ErrorMessage{Text: "first\nsecond" + strings.Repeat("x", 60_000)})
	a.expectToLinger(b, 2)
	lines := b.Log.FilterMessage("The run ends: the agent reported an error").All()
	require.Len(t, lines, 1)
	said := lines[0].ContextMap()["error"].(string)
	assert.True(t, strings.HasPrefix(said, `"first\nsecondxxx`), said)
	assert.Less(t, len(said), 300)
}

func TestADataBreakAheadOfAllEventsIsSentImmediately(t *testing.T) {
	b := newBed(t, quickly)
	a := connect(b, 1)
	a.control.send(bytefrog.DataBreak{Sequence: 500})
	want := callevent.Point(500, callevent.CauseSuspended)
	b.Await("the break", func() bool {
		s := b.streams()[b.receiver.env.registry.lookup(1).State().Stream]
		return s != nil && s.barriers[want] > 0 && s.empty == s.batches
	})
	a.finish()
	b.awaitRuns(0)
	assert.EqualValues(t, 1, b.Counter("breaks"))
}

func TestABreakThatIsRefusedIsAnnouncedLater(t *testing.T) {
	b := newBed(t, quickly, func(_ *bed, c *Config) { c.KeepaliveInterval = 100 * time.Millisecond })
	b.Traces.RefuseWith(receivertestbed.ErrRefused)
	a := connect(b, 1)
	a.control.send(bytefrog.DataBreak{Sequence: 500})
	b.Await("a try", func() bool { return b.Traces.Calls().Returned > 0 })
	b.Traces.RefuseWith(nil)
	b.Await("the break", func() bool {
		for _, s := range b.streams() {
			return s.barriers[callevent.Point(500, callevent.CauseSuspended)] > 0
		}
		return false
	})
	a.finish()
	b.awaitRuns(0)
}

func TestAnIdleRunSendsEmptyBatches(t *testing.T) {
	b := newBed(t, quickly, func(_ *bed, c *Config) { c.KeepaliveInterval = 100 * time.Millisecond })
	a := connect(b, 1)
	p := a.join()
	p.write(append(namesOne(), calls(0, 5)...))
	b.Await("empty batches with the number that is next", func() bool {
		for _, s := range b.streams() {
			return s.empty >= 3 && s.next == 10
		}
		return false
	})
	a.finish()
	b.awaitRuns(0)
}
