// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"bytes"
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/hq"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
	"github.com/callbraid/callbraid/internal/testkit"
)

// Commands before start are for the collector's own run.
func TestCommandsBeforeStartAreObeyed(t *testing.T) {
	t.Parallel()
	for _, order := range []bytefrog.MessageType{bytefrog.TypeSuspend, bytefrog.TypePause} {
		t.Run(order.String(), func(t *testing.T) {
			t.Parallel()
			c := play(t, starting(t, 1, order))
			b := newBed(t, []string{c.address})
			a := b.byHand(t)
			a.data()
			assert.Equal(t, order, a.hear().Type())
		})
	}
}

// A suspended program is paused only after it is traced again.
func TestAPauseBeforeStartWaitsForTheEndOfASuspension(t *testing.T) {
	c := play(t, starting(t, 1, bytefrog.TypeSuspend, bytefrog.TypePause))
	b := newBed(t, []string{c.address})
	a := b.byHand(t)
	a.data()
	a.hears(bytefrog.TypeSuspend)
	a.say(bytefrog.DataBreak{})
	c.say <- []byte{byte(bytefrog.TypeUnsuspend)}
	a.hears(bytefrog.TypeUnsuspend, bytefrog.TypePause)
}

// The commands of a collector that is lost before start do not count.
func TestACommandBeforeStartEndsWithItsCollector(t *testing.T) {
	t.Parallel()
	for name, order := range map[string]bytefrog.MessageType{"suspend": bytefrog.TypeSuspend, "pause": bytefrog.TypePause, "stop": bytefrog.TypeStop} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := newCollector(t, testkit.Address(t))
			b := newBed(t, []string{first.address})
			p := &counting{slow: true}
			a, results := b.start(t.Context(), p)
			b.await("events", func() bool { return first.number() > 100 })
			bad := play(t, starting(t, 2, order)[:len(starting(t, 2, order))-1])
			b.network.move(first.address, bad.address)
			first.stop()
			<-bad.greeted
			good := newCollector(t, testkit.Address(t))
			b.network.move(first.address, good.address)
			b.network.cut()
			b.await("events at a good one", func() bool { return good.number() > 100 })
			a.Stop()
			result := ended(t, results)
			assert.Equal(t, bytefrogagent.Untraced, result.Outcome, result.Reason)
		})
	}
}

// Answers to a collector that sends endless commands and reads nothing are bounded.
func TestEndlessCommandsLoseTheLink(t *testing.T) {
	t.Parallel()
	c := play(t, starting(t, 1))
	b := newBed(t, []string{c.address}, func(g *Guard) { g.options.Memory = 256 * kib })
	a := b.byHand(t)
	a.data()
	b.network.stick(true)
	c.say <- []byte{byte(bytefrog.TypeSuspend)}
	require.Equal(t, bytefrog.TypeSuspend, a.hear().Type())
	a.say(bytefrog.DataBreak{Sequence: 0})
	flood := bytes.Repeat([]byte{byte(bytefrog.TypeSuspend)}, 64*kib)
	b.await("the loss", func() bool {
		select {
		case c.say <- flood:
		default:
		}
		return b.guard.counts.Losses.Load() > 0
	})
}

// A program that the collector has paused continues when no headquarters remains to unpause it.
func TestAProgramThatIsPausedRunsOnWhenTheGuardEnds(t *testing.T) {
	c := play(t, starting(t, 1))
	b := newBed(t, []string{c.address})
	a := b.byHand(t)
	data := a.data()
	c.say <- []byte{byte(bytefrog.TypePause)}
	require.Equal(t, bytefrog.TypePause, a.hear().Type())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- b.guard.Shutdown(ctx) }()
	assert.Equal(t, bytefrog.TypeUnpause, a.hear().Type())
	assert.Equal(t, bytefrog.TypeSuspend, a.hear().Type())
	a.say(bytefrog.DataBreak{Sequence: 0})
	assert.Equal(t, bytefrog.TypeError, a.hear().Type())
	_ = data.Close()
	_ = a.control.Close()
	assert.NoError(t, <-done)
}

// A guard that could not forward all data still disconnects from its agents in order.
func TestACollectorThatReadsNothingDoesNotCountAsACutOffAgent(t *testing.T) {
	t.Parallel()
	for name, answers := range map[string]bool{"an agent that answers": true, "one that doesn't": false} {
		t.Run(name, func(t *testing.T) {
			c := play(t, starting(t, 1))
			b := newBed(t, []string{c.address})
			a := b.byHand(t)
			data := a.data()
			b.network.stick(true)
			_, err := data.Write(everything(0, 1))
			require.NoError(t, err)
			b.await("something to wait", func() bool { return b.guard.State().Waiting > 0 })
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- b.guard.Shutdown(ctx) }()
			require.Equal(t, bytefrog.TypeSuspend, a.hear().Type())
			if answers {
				a.say(bytefrog.DataBreak{Sequence: 5})
				require.Equal(t, bytefrog.TypeError, a.hear().Type())
				_ = data.Close()
				_ = a.control.Close()
			}
			cancel()
			err = <-done
			assert.Equal(t, answers, err == nil, "%v", err)
			assert.NotZero(t, b.guard.counts.LostBytes.Load())
		})
	}
}

// The guard that ends refuses later data connections of an agent without one. Such an agent obeys no command, so the
// guard could not end its tracing otherwise.
func TestAnAgentThatMakesItsBuffersWhenTheGuardEndsRunsUntraced(t *testing.T) {
	t.Parallel()
	for name, until := range map[string]func(b *bed){
		"it tries when the guard begins to end": func(*bed) {},
		"when nothing listens any more": func(b *bed) {
			b.await("the listener's end", func() bool {
				conn, err := net.Dial("tcp", b.address)
				if err == nil {
					_ = conn.Close()
				}
				return err != nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCollector(t, testkit.Address(t))
			b := newBed(t, []string{c.address}, func(g *Guard) { g.timing.farewell, g.timing.quiet = time.Millisecond, time.Millisecond })
			preparing := make(chan struct{})
			_, results := b.start(t.Context(), &counting{}, func(o *bytefrogagent.Options) {
				o.Prepare = func() {
					close(preparing)
					<-b.guard.stopping.Done()
					until(b)
				}
			})
			<-preparing
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			require.NoError(t, b.guard.Shutdown(ctx))
			result := ended(t, results)
			assert.Equal(t, bytefrogagent.Untraced, result.Outcome, result.Reason)
		})
	}
}

// No collector pauses a program while the guard disconnects, because no headquarters would remain to unpause it.
func TestAProgramIsNotPausedDuringADisconnect(t *testing.T) {
	c := play(t, starting(t, 1))
	b := newBed(t, []string{c.address}, func(g *Guard) { g.timing.farewell = patience })
	a := b.byHand(t)
	data := a.data()
	s := b.guard.sessions()[0]
	b.await("it to obey commands", func() bool { return s.agent.Status().State == hq.Tracing })
	done := b.shutdown()
	a.hears(bytefrog.TypeSuspend)
	s.command(bytefrog.TypePause)
	a.say(bytefrog.DataBreak{Sequence: 0})
	a.hears(bytefrog.TypeError)
	_ = data.Close()
	_ = a.control.Close()
	assert.NoError(t, <-done)
}

// A peer that sent only hello does not count as a cut-off agent.
func TestAConnectionThatSentOnlyHelloDoesNotCountAsCutOff(t *testing.T) {
	for name, heard := range map[string]bool{"and nothing more": false, "and is alive": true} {
		t.Run(name, func(t *testing.T) {
			c := watch(t, starting(t, 1))
			b := newBed(t, []string{c.address})
			a := b.byHand(t)
			s := b.guard.sessions()[0]
			if heard {
				a.say(bytefrog.Heartbeat{Mode: bytefrog.ModeInitializing})
				b.await("its message", s.wasHeard)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			err := b.guard.Shutdown(ctx)
			assert.Equal(t, heard, err != nil, "%v", err)
		})
	}
}

// A guard that ends waits for a collector no longer than its own time, even with a long max-wait.
func TestAReaderThatWaitsForRoomDoesNotDelayTheEnd(t *testing.T) {
	c := watch(t, starting(t, 1))
	b := newBed(t, []string{c.address}, func(g *Guard) {
		g.options.Queue, g.options.MaxWait, g.options.Silence = chunkBytes, time.Hour, time.Hour
		g.timing.lastSilence = time.Hour
	})
	a := b.byHand(t)
	data := a.data()
	b.network.stick(true)
	write(t, data, bytes.Repeat(everything(0, 1), 4000))
	b.await("waiting data", func() bool { return b.guard.State().Waiting > chunkBytes })
	_ = a.control.Close()
	s := b.guard.sessions()[0]
	b.await("its end", func() bool { return isClosed(s.gone) })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	done := make(chan error, 1)
	go func() { done <- b.guard.Shutdown(ctx) }()
	select {
	case err := <-done:
		assert.NoError(t, err)
	case <-time.After(patience):
		b.network.healAll()
		require.Fail(t, "the guard doesn't end")
	}
}
