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

// What a collector orders in front of start is for its own run.
func TestOrdersInFrontOfStartAreObeyed(t *testing.T) {
	for _, order := range []bytefrog.MessageType{bytefrog.TypeSuspend, bytefrog.TypePause} {
		t.Run(order.String(), func(t *testing.T) {
			c := play(t, starting(t, 1, order))
			b := newBed(t, []string{c.address})
			a := b.byHand(t)
			a.data()
			assert.Equal(t, order, a.hear().Type())
		})
	}
}

// A program that is suspended is not paused before it is traced again.
func TestAPauseInFrontOfStartWaitsForTheEndOfASuspension(t *testing.T) {
	c := play(t, starting(t, 1, bytefrog.TypeSuspend, bytefrog.TypePause))
	b := newBed(t, []string{c.address})
	a := b.byHand(t)
	a.data()
	a.hears(bytefrog.TypeSuspend)
	a.say(bytefrog.DataBreak{})
	c.say <- []byte{byte(bytefrog.TypeUnsuspend)}
	a.hears(bytefrog.TypeUnsuspend, bytefrog.TypePause)
}

// A collector that is lost before it has said start has ordered nothing.
func TestAnOrderInFrontOfStartGoesWithItsCollector(t *testing.T) {
	for name, order := range map[string]bytefrog.MessageType{"suspend": bytefrog.TypeSuspend, "pause": bytefrog.TypePause, "stop": bytefrog.TypeStop} {
		t.Run(name, func(t *testing.T) {
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

// Answers to a collector that orders without end, and reads nothing, are bounded.
func TestOrdersWithoutEndAreALoss(t *testing.T) {
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

// A program that the collector has paused runs again when nobody is there who could say so.
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

// A guard that could not pass all on has left its agents in order all the same.
func TestACollectorThatTakesNothingIsNoAgentThatIsCutOff(t *testing.T) {
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

// An agent that has not opened a data connection when the guard ends is refused those that it
// still opens: it takes no orders, so it couldn't be told that tracing is over.
func TestAnAgentThatMakesItsBuffersWhenTheGuardEndsRunsUntraced(t *testing.T) {
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

// A collector doesn't pause a program that is left: nobody would be there to have it go on.
func TestAProgramThatIsLeftIsNotPaused(t *testing.T) {
	c := play(t, starting(t, 1))
	b := newBed(t, []string{c.address}, func(g *Guard) { g.timing.farewell = patience })
	a := b.byHand(t)
	data := a.data()
	s := b.guard.sessions()[0]
	b.await("it to take orders", func() bool { return s.agent.Status().State == hq.Tracing })
	done := b.shutdown()
	a.hears(bytefrog.TypeSuspend)
	s.command(bytefrog.TypePause)
	a.say(bytefrog.DataBreak{Sequence: 0})
	a.hears(bytefrog.TypeError)
	_ = data.Close()
	_ = a.control.Close()
	assert.NoError(t, <-done)
}

// Who said hello, and nothing more, is no agent that was cut off.
func TestAConnectionThatSentOnlyHelloDoesNotCountAsCutOff(t *testing.T) {
	for name, heard := range map[string]bool{"and nothing more": false, "and is alive": true} {
		t.Run(name, func(t *testing.T) {
			c := watch(t, starting(t, 1))
			b := newBed(t, []string{c.address})
			a := b.byHand(t)
			s := b.guard.sessions()[0]
			if heard {
				a.say(bytefrog.Heartbeat{Mode: bytefrog.ModeInitializing})
				b.await("that to be heard", s.wasHeard)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			err := b.guard.Shutdown(ctx)
			assert.Equal(t, heard, err != nil, "%v", err)
		})
	}
}

// A guard that ends waits for no collector longer than it has time, however long that may have
// what comes wait.
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
	b.await("what waits", func() bool { return b.guard.State().Waiting > chunkBytes })
	_ = a.control.Close()
	s := b.guard.sessions()[0]
	b.await("it to be gone", func() bool { return isClosed(s.gone) })
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
