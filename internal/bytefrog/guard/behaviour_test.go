// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/hq"
	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/testkit"
)

// These tests compare the messages on both sides of a guard.

// hears fails the test unless these are the next messages for the agent.
func (a *byHand) hears(want ...bytefrog.MessageType) {
	a.t.Helper()
	for _, of := range want {
		require.Equal(a.t, of, a.hear().Type())
	}
}

// hearsNothing closes the agent's side of the control connection. It fails the test if a message arrives before the
// guard closes its side.
func (a *byHand) hearsNothing() {
	a.t.Helper()
	require.NoError(a.t, a.control.(*net.TCPConn).CloseWrite())
	m, _, err := a.in.Next(fromCollector(1), time.Now().Add(patience))
	assert.ErrorIs(a.t, err, io.EOF, "%v", m)
}

func write(t *testing.T, conn net.Conn, b []byte) {
	t.Helper()
	_, err := conn.Write(b)
	require.NoError(t, err)
}

// shutdown ends the guard in the background.
func (b *bed) shutdown() <-chan error {
	done := make(chan error, 1)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	b.t.Cleanup(cancel)
	go func() { done <- b.guard.Shutdown(ctx) }()
	return done
}

// One data connection ends before the others, as without a guard.
func TestADataConnectionEndsAtTheCollectorWhenItEnds(t *testing.T) {
	c := watch(t, starting(t, 2))
	a := newBed(t, []string{c.address}).byHand(t)
	first := a.data()
	write(t, first, everything(0, 1))
	c.awaitEvents(inEverything)
	second := a.data()
	write(t, second, everything(5, 1))
	c.awaitEvents(2 * inEverything)
	_ = first.Close()
	c.await("data 0 ended", 1)
	write(t, second, everything(10, 1))
	c.awaitEvents(3 * inEverything)
	_ = second.SetLinger(0)
	_ = second.Close()
	c.await("data 1 cut off", 1)
	_ = a.control.Close()
	c.await("control ended", 1)
	assert.Equal(t, []string{"data 0 ended", "data 1 cut off", "control ended"}, c.seen())
}

// The guard answers a repeated suspend. A suspended agent does not.
func TestEachSuspendOfACollectorIsAnswered(t *testing.T) {
	c := watch(t, starting(t, 1))
	a := newBed(t, []string{c.address}).byHand(t)
	a.data()
	c.order(bytefrog.TypeSuspend)
	a.hears(bytefrog.TypeSuspend)
	a.say(bytefrog.DataBreak{Sequence: 7})
	c.await("break 7", 1)
	c.order(bytefrog.TypeSuspend)
	c.await("break 7", 2)
	c.order(bytefrog.TypeUnsuspend)
	a.hears(bytefrog.TypeUnsuspend)
}

// Both sides see the steps of a disconnect in order.
func TestTheGuardDisconnectsInOrder(t *testing.T) {
	c := watch(t, starting(t, 1))
	b := newBed(t, []string{c.address}, func(g *Guard) { g.timing.farewell, g.timing.quiet, g.timing.drain = patience, patience, patience })
	a := b.byHand(t)
	data := a.data()
	write(t, data, everything(0, 1))
	c.awaitEvents(inEverything)
	done := b.shutdown()
	a.hears(bytefrog.TypeSuspend)
	a.say(bytefrog.DataBreak{Sequence: 3 * inEverything})
	write(t, data, everything(5, 1))
	c.awaitEvents(2 * inEverything)
	// It gets the error message after all its numbered messages have arrived.
	assert.NotContains(t, c.seen(), "heartbeat X")
	write(t, data, everything(10, 1))
	a.hears(bytefrog.TypeError)
	_ = data.Close()
	_ = a.control.Close()
	assert.NoError(t, <-done)
	c.await("control ended", 1)
	c.await("data 0 ended", 1)
	c.awaitEvents(3 * inEverything)
	// The guard does not control which end the collector sees first.
	of := slices.DeleteFunc(c.seen(), func(what string) bool { return what == "data 0 ended" })
	assert.Equal(t, []string{"break 15", "heartbeat X", "control ended"}, of, "it has shut down")
}

// An agent without buffers would hang at a command.
func TestAnAgentWithoutBuffersGetsNoCommandWhenTheGuardEnds(t *testing.T) {
	c := watch(t, starting(t, 1))
	b := newBed(t, []string{c.address})
	a := b.byHand(t)
	s := b.guard.sessions()[0]
	done := b.shutdown()
	b.await("its data connection to be refused", func() bool {
		s.data.mu.Lock()
		defer s.data.mu.Unlock()
		return s.data.closed
	})
	a.hearsNothing()
	assert.NoError(t, <-done)
}

// The guard closes data connections before the control connection. So the agent can report that, and its program runs
// on.
func TestDataConnectionsAreClosedFirst(t *testing.T) {
	c := watch(t, starting(t, 1))
	b := newBed(t, []string{c.address}, func(g *Guard) {
		g.timing.farewell, g.timing.quiet, g.timing.parting, g.timing.control = 0, 0, 0, patience
	})
	a := b.byHand(t)
	data := a.data()
	s := b.guard.sessions()[0]
	b.await("it to obey commands", func() bool { return s.agent.Status().State == hq.Tracing })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.guard.Shutdown(ctx) }()
	a.hears(bytefrog.TypeSuspend, bytefrog.TypeError)
	cancel()
	_, err := io.Copy(io.Discard, data)
	require.NoError(t, err)
	require.NoError(t, a.control.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
	_, err = a.control.Read(make([]byte, 1))
	assert.ErrorIs(t, err, os.ErrDeadlineExceeded, "the control connection is open")
	_ = a.control.Close()
	assert.Error(t, <-done)
}

// Data connections are closed some time after their control connection.
func TestDataConnectionsOutliveTheControlConnectionForAWhile(t *testing.T) {
	c := watch(t, starting(t, 1))
	b := newBed(t, []string{c.address}, func(g *Guard) { g.timing.orphan = 50 * time.Millisecond })
	a := b.byHand(t)
	data := a.data()
	_ = a.control.Close()
	require.NoError(t, data.SetReadDeadline(time.Now().Add(patience)))
	_, err := io.Copy(io.Discard, data)
	assert.NoError(t, err)
	c.await("control ended", 1)
}

// An agent whose tracing is over gets no suspend when the collector is lost.
func TestAnAgentThatEndsGetsNoCommand(t *testing.T) {
	for name, end := range map[string]func(a *byHand, data net.Conn){
		"it shuts down": func(a *byHand, _ net.Conn) { a.say(bytefrog.Heartbeat{Mode: bytefrog.ModeShuttingDown}) },
		"it reports an error": func(a *byHand, _ net.Conn) {
			a.say(bytefrog.ErrorMessage{Text: "no"})
		},
		"it reports an error on a data connection": func(a *byHand, data net.Conn) {
			write(a.t, data, bytefrog.ErrorMessage{Text: "no"}.AppendTo(nil))
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := watch(t, starting(t, 1))
			b := newBed(t, []string{c.address})
			a := b.byHand(t)
			data := a.data()
			s := b.guard.sessions()[0]
			end(a, data)
			b.await("that to be noticed", func() bool { return s.agent.Status().State == hq.Ended })
			b.network.cut()
			b.await("the loss", func() bool { return b.guard.counts.Losses.Load() == 1 })
			_ = data.Close()
			a.hearsNothing()
			assert.Zero(t, b.guard.counts.Suspensions.Load())
		})
	}
}

// The guard reads the data that an agent still sends after bad data.
func TestAConnectionWithBadDataIsReadOn(t *testing.T) {
	c := watch(t, starting(t, 1))
	a := newBed(t, []string{c.address}).byHand(t)
	data := a.data()
	write(t, data, []byte{255})
	a.hears(bytefrog.TypeError)
	write(t, data, make([]byte, 16*mib))
	_ = data.Close()
	_ = a.control.Close()
	c.await("control ended", 1)
	assert.Contains(t, c.seen(), bytefrog.TypeError.String())
}

// Run IDs are small numbers, so a guess from another host is refused.
func TestADataConnectionFromAnotherHostIsRefused(t *testing.T) {
	c := watch(t, starting(t, 2))
	b := newBed(t, []string{c.address})
	a := b.byHand(t)
	a.data()
	stranger, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).Dial("tcp", b.address)
	if err != nil {
		t.Skip("this system has no address 127.0.0.2:", err)
	}
	defer stranger.Close()
	write(t, stranger, bytefrog.DataHello{Run: a.configuration.RunID}.AppendTo(nil))
	m, _, err := newReader(stranger, controlBytes).Next(fromCollector(1), time.Now().Add(patience))
	require.NoError(t, err)
	require.IsType(t, bytefrog.ErrorMessage{}, m)
	assert.Contains(t, m.(bytefrog.ErrorMessage).Text, "from the host of the control connection")
}

// An agent that does not answer suspend still gets a run at the next collector.
func TestAnAgentThatNeverAnswersGetsANewRun(t *testing.T) {
	first, second := watch(t, starting(t, 1)), watch(t, starting(t, 1))
	b := newBed(t, []string{first.address}, func(g *Guard) { g.timing.answer = 50 * time.Millisecond })
	a := b.byHand(t)
	data := a.data()
	write(t, data, everything(0, 1))
	first.awaitEvents(inEverything)
	b.network.move(first.address, second.address)
	first.leave()
	a.hears(bytefrog.TypeSuspend)
	a.say(bytefrog.Heartbeat{Mode: bytefrog.ModeTracing})
	a.hears(bytefrog.TypeUnsuspend)
	write(t, data, everything(5, 1))
	second.awaitEvents(inEverything)
}

// An agent that does not answer gets unsuspend after its time.
func TestAnAgentThatNeverAnswersGetsUnsuspend(t *testing.T) {
	c := watch(t, starting(t, 1))
	b := newBed(t, []string{c.address}, func(g *Guard) { g.timing.answer = 300 * time.Millisecond })
	a := b.byHand(t)
	a.data()
	s := b.guard.sessions()[0]
	b.await("it to obey commands", func() bool { return s.agent.Status().State == hq.Tracing }) // before that, suspend and unsuspend cancel each other
	c.say <- []byte{byte(bytefrog.TypeSuspend), byte(bytefrog.TypeUnsuspend)}
	a.hears(bytefrog.TypeSuspend, bytefrog.TypeUnsuspend)
}

// The memory for an agent does not grow with lost collectors.
func TestMemoryIsFlatOverManyLosses(t *testing.T) {
	const before, losses = 20, 200
	c := watch(t, starting(t, 2))
	b := newBed(t, []string{c.address}, func(g *Guard) { g.options.Retry.MaxInterval = time.Millisecond })
	a := b.byHand(t)
	data := []net.Conn{a.data(), a.data()}
	lose := func(i int) {
		c.leave()
		a.hears(bytefrog.TypeSuspend)
		a.say(bytefrog.DataBreak{Sequence: uint32(i * inEverything)})
		a.say(bytefrog.Heartbeat{Mode: bytefrog.ModeSuspended})
		a.hears(bytefrog.TypeUnsuspend)
		write(t, data[i%2], everything(uint32(i*inEverything), 1))
		c.awaitEvents((i + 1) * inEverything)
	}
	used := func() (bytes uint64, goroutines int) {
		runtime.GC()
		runtime.GC() // what a pool had is gone after the second
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc, runtime.NumGoroutine()
	}
	for i := range before {
		lose(i)
	}
	bytesBefore, goroutinesBefore := used()
	for i := range losses {
		lose(before + i)
	}
	bytesAfter, goroutinesAfter := used()
	assert.Less(t, bytesAfter, bytesBefore+256*kib)
	assert.InDelta(t, goroutinesBefore, goroutinesAfter, 5)
	assert.EqualValues(t, before+losses, b.guard.counts.Losses.Load())
}

// A new collector gets a heartbeat immediately, and then as often as configured, even if the agent sends fewer.
func TestANewCollectorGetsHeartbeats(t *testing.T) {
	m, err := bytefrog.AgentConfiguration{
		RunID: 1, HeartbeatInterval: 20 * time.Millisecond, BufferMemoryBudget: mib, QueueRetryCount: 1, DataConnections: 1,
	}.Message(1)
	require.NoError(t, err)
	often := bytefrog.Command{Of: bytefrog.TypeStart}.AppendTo(m.AppendTo(nil))
	first, second := watch(t, starting(t, 1)), watch(t, often)
	b := newBed(t, []string{first.address})
	a := b.byHand(t)
	a.data()
	a.say(bytefrog.Heartbeat{Mode: bytefrog.ModeSuspended})
	first.await("heartbeat S", 1) // so the guard knows it when the second one is there
	b.network.move(first.address, second.address)
	first.leave()
	a.hears(bytefrog.TypeSuspend)
	a.say(bytefrog.DataBreak{Sequence: 0})
	a.hears(bytefrog.TypeUnsuspend)
	second.await("heartbeat S", 3)
	assert.Equal(t, []string{"heartbeat S", "break 0"}, second.seen()[:2])
}

func TestCollectorsThatGetRepeatedHeartbeats(t *testing.T) {
	const interval = 10 * time.Second
	begin := time.Now()
	for name, c := range map[string]struct {
		promised, interval, after time.Duration
		heard                     bool
		want                      bool
	}{
		"the agent sends fewer":                           {promised: time.Second, interval: interval, after: time.Second, want: true},
		"the next one is not due":                         {promised: time.Second, interval: interval, after: time.Second - 1, want: false},
		"the agent was silent for too long":               {promised: time.Second, interval: interval, after: missedBeats*interval + 1, want: false},
		"the agent has sent a message":                    {promised: time.Second, interval: interval, after: missedBeats*interval + 1, heard: true, want: true},
		"the agent sends as many":                         {promised: interval, interval: interval, after: 2 * interval, want: false},
		"the agent was configured to send none":           {promised: time.Second, interval: 0, after: interval, want: true},
		"the collector expects none":                      {promised: 0, interval: interval, after: interval, want: false},
		"the agent sends more than the collector expects": {promised: interval, interval: time.Second, after: interval, want: false},
	} {
		t.Run(name, func(t *testing.T) {
			l := &link{flow: flow{chunks: &chunks{}, wakeUp: func() {}, made: begin}}
			l.control = newOutlet(&l.flow, false, l.writeFailed)
			l.configuration.HeartbeatInterval = c.promised
			s := &session{env: &environment{options: DefaultOptions()}, link: l, heard: begin, beaten: begin}
			s.configuration.HeartbeatInterval = c.interval
			now := begin.Add(c.after)
			if c.heard {
				s.heard = now
			}
			(&keeper{session: s}).repeatHeartbeat(l, now)
			assert.Equal(t, c.want, l.waiting.Load() > 0)
		})
	}
}

func TestAnAgentIsReadyForANewCollector(t *testing.T) {
	lost := time.Now()
	for name, c := range map[string]struct {
		interval time.Duration
		heard    time.Time
		answer   time.Duration
		then     func(a *hq.Agent)
		want     bool
	}{
		"it has sent a message since":          {time.Second, lost.Add(1), time.Hour, func(a *hq.Agent) { a.DataBreak(0) }, true},
		"not if it may be dead":                {time.Second, lost.Add(-1), time.Hour, func(a *hq.Agent) { a.DataBreak(0) }, false},
		"it sends no heartbeats":               {0, lost.Add(-1), time.Hour, func(a *hq.Agent) { a.DataBreak(0) }, true},
		"not before it has suspended":          {time.Second, lost.Add(1), time.Hour, func(*hq.Agent) {}, false},
		"it has not answered in time":          {time.Second, lost.Add(1), 1, awaitUnanswered, true},
		"not if it ends":                       {time.Second, lost.Add(1), time.Hour, (*hq.Agent).End, false},
		"not one that ends after it suspended": {time.Second, lost.Add(1), time.Hour, func(a *hq.Agent) { a.DataBreak(0); a.End() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &session{heard: c.heard}
			s.configuration.HeartbeatInterval = c.interval
			s.agent = hq.NewAgent(hq.Settings{Send: sendNothing, Answer: c.answer})
			defer s.agent.End()
			s.agent.SetPrepared()
			s.agent.Suspend(hq.Absence)
			c.then(s.agent)
			assert.Equal(t, c.want, s.isReadyForCollector(lost))
		})
	}
}

// sendNothing ignores commands.
func sendNothing(hq.Command) error { return nil }

// awaitUnanswered waits until the time in which an agent answers suspend is over.
func awaitUnanswered(a *hq.Agent) {
	a.Await(func(s hq.Status) bool { return s.State == hq.Unanswered }, nil, nil)
}

// The collector that accepted an agent last is tried first.
func TestTheCollectorThatWorkedIsTriedFirst(t *testing.T) {
	c := watch(t, starting(t, 1))
	var tried []string
	b := newBed(t, []string{testkit.Address(t), c.address}, func(g *Guard) {
		inner := g.dial
		g.dial = func(ctx context.Context, address string) (net.Conn, error) {
			tried = append(tried, address)
			return inner(ctx, address)
		}
	})
	for range 2 {
		_ = b.byHand(t).control.Close()
		c.await("control ended", 1)
		b.await("the agent to be gone", func() bool { return b.guard.State().Agents == 0 })
	}
	require.Len(t, tried, 3)
	assert.Equal(t, []string{c.address, c.address}, tried[1:])
}

// There is a pause between two tries to reach a collector.
func TestThereIsAPauseBetweenTries(t *testing.T) {
	const pause = 60 * time.Millisecond
	var tried []time.Time
	b := newBed(t, []string{testkit.Address(t)}, func(g *Guard) {
		g.options.Retry = backoff.Config{InitialInterval: pause, MaxInterval: pause}
		g.options.StartTimeout = 6 * pause
		g.dial = func(context.Context, string) (net.Conn, error) {
			tried = append(tried, time.Now())
			return nil, errors.New("none")
		}
	})
	_ = b.byHand(t).control.Close()
	b.await("the agent to be gone", func() bool { return b.guard.counts.TurnedAway.Load() == 1 })
	for i := 1; i < len(tried); i++ {
		assert.GreaterOrEqual(t, tried[i].Sub(tried[i-1]), pause/2)
	}
}

// After a long link, pauses begin with the first one again. After a short link they do not.
func TestOnlyACollectorThatStayedMakesPausesShort(t *testing.T) {
	const first = time.Millisecond
	for _, stayed := range []time.Duration{time.Second, time.Hour} {
		retry := backoff.New(backoff.Config{InitialInterval: first, MaxInterval: time.Hour})
		for range 10 {
			retry.Pause()
		}
		begin := time.Now()
		k := &keeper{session: &session{env: &environment{timing: defaultTiming(), options: DefaultOptions()}}, retry: retry, linked: begin}
		k.noteLoss(&link{}, begin.Add(stayed))
		assert.Equal(t, stayed == time.Hour, retry.Pause() <= 2*first, "a collector that stayed for %v", stayed)
	}
}

// An agent without a data connection would hang at the error message of --give-up.
func TestTheGuardWaitsForAnAgentWithoutDataConnectionsAfterGiveUp(t *testing.T) {
	g := &environment{timing: timing{tick: time.Millisecond}, options: Options{GiveUp: 1}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := &session{env: g, agent: hq.NewAgent(hq.Settings{Send: sendNothing}), data: newDataConnections(), awake: make(chan struct{})}
	k := &keeper{session: s, ctx: ctx, absent: time.Now().Add(-time.Hour), retry: backoff.New(backoff.Config{})}
	ended := make(chan *link, 1)
	go func() { ended <- k.reconnect() }()
	for range 2 {
		select {
		case s.awake <- struct{}{}: // it waits
		case <-ended:
			require.Fail(t, "it was given up")
		case <-time.After(patience):
			require.Fail(t, "it doesn't wait")
		}
	}
	cancel()
	assert.Nil(t, <-ended)
	assert.False(t, k.givenUp)
}

// When the guard ends, silent connections have little time.
func TestSilentConnectionsDoNotDelayTheEnd(t *testing.T) {
	b := newBed(t, []string{testkit.Address(t)}, func(g *Guard) {
		g.options.HandshakeTimeout, g.timing.hello = time.Hour, 10*time.Millisecond
	})
	silent, err := net.Dial("tcp", b.address)
	require.NoError(t, err)
	defer silent.Close()
	b.await("it to be accepted", func() bool { return b.guard.slots.Open() == 1 })
	select {
	case err := <-b.shutdown():
		assert.NoError(t, err)
	case <-time.After(patience):
		_ = silent.Close()
		require.Fail(t, "the guard doesn't end")
	}
}

// A guard without agents does not wait at its end for a collector that reads nothing.
func TestACollectorThatReadsNothingDoesNotDelayTheEnd(t *testing.T) {
	c := watch(t, starting(t, 1))
	b := newBed(t, []string{c.address}, func(g *Guard) {
		g.options.Silence, g.timing.lastSilence, g.timing.tick = time.Hour, 50*time.Millisecond, 10*time.Millisecond
	})
	a := b.byHand(t)
	data := a.data()
	b.network.stick(true)
	write(t, data, everything(0, 1))
	b.await("something to wait", func() bool { return b.guard.State().Waiting > 0 })
	done := make(chan error, 1)
	go func() { done <- b.guard.Shutdown(context.Background()) }()
	a.hears(bytefrog.TypeSuspend)
	a.say(bytefrog.DataBreak{Sequence: inEverything})
	a.hears(bytefrog.TypeError)
	_ = data.Close()
	_ = a.control.Close()
	select {
	case err := <-done:
		assert.NoError(t, err)
		assert.Positive(t, b.guard.counts.LostBytes.Load())
	case <-time.After(patience):
		b.network.healAll()
		require.Fail(t, "the guard doesn't end")
	}
}

// An agent is started when its link is ready for its first data.
func TestAnAgentIsStartedWhenItsLinkIsReady(t *testing.T) {
	c := watch(t, nil)
	b := newBed(t, []string{c.address})
	control, err := net.Dial("tcp", b.address)
	require.NoError(t, err)
	defer control.Close()
	write(t, control, bytefrog.Hello{Version: 1}.AppendTo(nil))
	b.await("the agent", func() bool { return b.guard.State().Agents == 1 })
	s := b.guard.sessions()[0]
	s.passing.RLock() // the link can't be changed
	c.say <- starting(t, 1)
	in := newReader(control, maxConfiguration)
	m, _, err := in.Next(fromCollector(1), time.Now().Add(patience))
	require.NoError(t, err)
	require.Equal(t, bytefrog.TypeConfiguration, m.Type())
	m, _, err = in.Next(fromCollector(1), time.Now().Add(200*time.Millisecond))
	assert.ErrorIs(t, err, os.ErrDeadlineExceeded, "%v", m)
	s.passing.RUnlock()
	m, _, err = in.Next(fromCollector(1), time.Now().Add(patience))
	require.NoError(t, err)
	assert.Equal(t, bytefrog.Command{Of: bytefrog.TypeStart}, m)
}

// All queues together leave memory for the data in the buffers of a suspended agent.
func TestQueuesUseAPartOfMemory(t *testing.T) {
	const connections = 64
	b := newBed(t, []string{watch(t, starting(t, connections)).address}, func(g *Guard) { g.options.Queue, g.options.Memory = 64*mib, 64*mib })
	b.byHand(t)
	l := b.guard.sessions()[0].current()
	assert.LessOrEqual(t, connections*l.queue, int64(64*mib/8))
	assert.LessOrEqual(t, connections*l.rise, int64(64*mib/8))
}

// A program that was stopped for longer than --give-up can still reach its collector.
func TestAnAgentThatWasStoppedForLongerThanGiveUpIsTracedAgain(t *testing.T) {
	first, second := watch(t, starting(t, 1)), watch(t, starting(t, 1))
	b := newBed(t, []string{first.address}, func(g *Guard) { g.options.GiveUp, g.timing.steady = time.Millisecond, time.Microsecond })
	a := b.byHand(t)
	a.data()
	s := b.guard.sessions()[0]
	b.await("it to obey commands", func() bool { return s.agent.Status().State == hq.Tracing })
	b.network.move(first.address, second.address)
	lost := time.Now()
	first.leave()
	a.hears(bytefrog.TypeSuspend)
	b.await("the time to be over", func() bool { return time.Since(lost) > 100*s.env.options.GiveUp })
	a.say(bytefrog.DataBreak{Sequence: 0})
	a.hears(bytefrog.TypeUnsuspend)
}

// The time in which an agent is silent does not count for --give-up.
func TestWaitingForTheAgentIsNoAbsence(t *testing.T) {
	absent := time.Now()
	k := &keeper{session: &session{env: &environment{timing: timing{tick: 10 * time.Millisecond}}}, absent: absent}
	k.awaitAgent()
	assert.GreaterOrEqual(t, k.absent.Sub(absent), k.session.env.timing.tick)
}
