// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/capture"
	"github.com/callbraid/callbraid/internal/callevent"
)

var captures = map[string]struct{ events int }{
	"shop":           {events: 9_628},
	"suspend":        {events: 47_870},
	"startsuspended": {events: 29_310},
	"maven":          {events: 887_366},
}

func openCapture(t testing.TB, name string) *capture.Capture {
	t.Helper()
	c, err := capture.Open("../../testdata/bytefrog/" + name + ".zip")
	require.NoError(t, err)
	return c
}

const helloBytes = 2

// reference reads a capture the slow and obvious way: all names first, then each
// event with its own.
func reference(t testing.TB, c *capture.Capture) map[uint64]called {
	t.Helper()
	methods, exceptions, threads := map[uint32]string{}, map[uint32]string{}, map[uint16][]bytefrog.MapThreadName{}
	var events []bytefrog.Event
	for _, data := range c.Data {
		for b := data[helloBytes:]; len(b) > 0; {
			var one [1]bytefrog.Event
			if n, used := bytefrog.DecodeEvents(one[:], b); n == 1 {
				events, b = append(events, one[0]), b[used:]
				continue
			}
			m, used, err := bytefrog.DecodeData(b, bytefrog.MaxString)
			require.NoError(t, err)
			require.NotZero(t, used)
			b = b[used:]
			switch m := m.(type) {
			case bytefrog.MapMethod:
				methods[m.Method] = bytefrog.ParseMethodSignature(m.Signature).Qualified
			case bytefrog.MapException:
				exceptions[m.Exception] = m.Name
			case bytefrog.MapThreadName:
				threads[m.Thread] = append(threads[m.Thread], m)
			}
		}
	}
	calls := map[uint64]called{}
	for _, e := range events {
		c := called{function: methods[e.Method], lane: uint64(e.Thread), line: uint32(e.Line)}
		require.NotEmpty(t, c.function)
		if c.line == noLine {
			c.line = 0
		}
		var at uint32
		for i, m := range threads[e.Thread] {
			if i == 0 || m.Time <= e.Time && m.Time >= at {
				c.thread, at = m.Name, m.Time
			}
		}
		switch e.Type {
		case bytefrog.TypeMethodEntry:
			c.kind = callevent.KindEnter
		case bytefrog.TypeMethodExit:
			c.kind = callevent.KindExit
		case bytefrog.TypeException:
			c.kind, c.exception = callevent.KindThrow, exceptions[e.Exception]
		case bytefrog.TypeExceptionBubble:
			c.kind, c.exception = callevent.KindUnwind, exceptions[e.Exception]
		}
		calls[uint64(e.Sequence)] = c
	}
	return calls
}

// play sends a capture as an agent would, over the connections that it was
// recorded from, in pieces of the size that piece gives.
func play(b *bed, c *capture.Capture, piece func() int) {
	b.t.Helper()
	a := connect(b, 1)
	a.control.write(c.Control[helloBytes:])
	for range c.Data {
		a.join()
	}
	var sending sync.WaitGroup
	for i, data := range c.Data {
		p := a.data[i]
		sending.Add(1)
		go func() {
			defer sending.Done()
			for rest := data[helloBytes:]; len(rest) > 0; {
				n := min(piece(), len(rest))
				if _, err := p.conn.Write(rest[:n]); !assert.NoError(b.t, err) {
					return
				}
				rest = rest[n:]
			}
			p.close()
		}()
	}
	sending.Wait()
	a.control.close()
	b.awaitRuns(0)
}

func withDataConnections(n int) option {
	return func(_ *bed, c *Config) { c.Agent.DataConnections = n }
}

func TestACaptureBecomesBatchesWithEveryEventOnceAndItsNames(t *testing.T) {
	for name, want := range captures {
		t.Run(name, func(t *testing.T) {
			c := openCapture(t, name)
			b := newBed(t, quickly, withDataConnections(len(c.Data)))
			play(b, c, func() int { return 8 << 10 })
			s := b.pipeline.only(t)
			assert.Len(t, s.events, want.events)
			assert.Empty(t, s.twice)
			assertSameCalls(t, reference(t, c), s.events)
			assert.Equal(t, callevent.End(uint64(want.events), callevent.CauseEnded), s.end(t))
			assert.Zero(t, b.metric("receiver_bytefrog_names_unknown"))
			assert.EqualValues(t, want.events, b.metric("receiver_bytefrog_events"))
			assert.Empty(t, b.said.FilterLevelExact(1).All(), "warnings")
		})
	}
}

// assertSameCalls compares all but the names of threads that were renamed: a thread's
// events can be read before the message that renames it, on another connection. A
// thread has then one of its names.
func assertSameCalls(t *testing.T, want, got map[uint64]called) {
	t.Helper()
	names := map[uint64]map[string]bool{}
	for _, w := range want {
		if names[w.lane] == nil {
			names[w.lane] = map[string]bool{}
		}
		names[w.lane][w.thread] = true
	}
	different := 0
	for sequence, w := range want {
		g, ok := got[sequence]
		if names[w.lane][g.thread] {
			g.thread = w.thread
		}
		if (!ok || g != w) && different < 10 {
			different++
			assert.Fail(t, fmt.Sprintf("event %d: expected %+v, got %+v (there: %v)", sequence, w, g, ok))
		}
	}
	assert.Len(t, got, len(want))
}

func TestTheSizesOfReadsChangeNothing(t *testing.T) {
	c := openCapture(t, "shop")
	want := reference(t, c)
	for _, most := range []int{1, 40, 5_000} {
		t.Run(fmt.Sprintf("at most %d bytes", most), func(t *testing.T) {
			b := newBed(t, quickly, withDataConnections(len(c.Data)))
			var mu sync.Mutex
			random := rand.New(rand.NewPCG(1, uint64(most)))
			play(b, c, func() int {
				mu.Lock()
				defer mu.Unlock()
				return 1 + random.IntN(most)
			})
			assertSameCalls(t, want, b.pipeline.only(t).events)
		})
	}
}

func TestDataBreaksAreBarriers(t *testing.T) {
	c := openCapture(t, "suspend")
	b := newBed(t, quickly, withDataConnections(len(c.Data)))
	play(b, c, func() int { return 8 << 10 })
	assert.ElementsMatch(t, []callevent.Barrier{
		callevent.Point(13322, callevent.CauseSuspended),
		callevent.Point(28180, callevent.CauseSuspended),
	}, b.pipeline.only(t).breaks())
}
