// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/capture"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/testkit/reference"
)

var captures = map[string]struct {
	events int
	// breaks are the barriers before the end.
	breaks []callevent.Barrier
}{
	"shop":           {events: 9_628},
	"suspend":        {events: 47_870, breaks: []callevent.Barrier{callevent.Point(13322, callevent.CauseSuspended), callevent.Point(28180, callevent.CauseSuspended)}},
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

// wanted are the events of a capture with their names, read the slow and obvious way.
func wanted(t testing.TB, name string) map[uint64]called {
	t.Helper()
	run, err := reference.Open("../../testdata/bytefrog/" + name + ".zip")
	require.NoError(t, err)
	kinds := map[byte]callevent.Kind{
		byte(bytefrog.TypeMethodEntry):     callevent.KindEnter,
		byte(bytefrog.TypeMethodExit):      callevent.KindExit,
		byte(bytefrog.TypeException):       callevent.KindThrow,
		byte(bytefrog.TypeExceptionBubble): callevent.KindUnwind,
	}
	calls := map[uint64]called{}
	for _, e := range run.Events {
		c := called{
			kind: kinds[e.Type], function: reference.Qualified(e.Method), lane: uint64(e.Thread), thread: run.ThreadName(e),
			exception: e.Exception, line: uint32(e.Line),
		}
		if c.line == math.MaxUint16 {
			c.line = 0
		}
		calls[uint64(e.Sequence)] = c
	}
	return calls
}

// play sends a capture as an agent would, over the connections that it was
// recorded from, in pieces of the size that piece gives.
func play(b *bed, c *capture.Capture, piece func() int) {
	b.T.Helper()
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
				if _, err := p.conn.Write(rest[:n]); !assert.NoError(b.T, err) {
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
		if testing.Short() && want.events > 10_000 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			c := openCapture(t, name)
			b := newBed(t, quickly, withDataConnections(len(c.Data)))
			play(b, c, func() int { return 8 << 10 })
			s := b.only()
			assert.Len(t, s.events, want.events)
			assert.Empty(t, s.twice)
			assertSameCalls(t, wanted(t, name), s.events)
			assert.Equal(t, callevent.End(uint64(want.events), callevent.CauseEnded), s.end(t))
			assert.ElementsMatch(t, want.breaks, s.breaks())
			assert.Zero(t, b.Counter("names_unknown"))
			assert.EqualValues(t, want.events, b.Counter("events"))
			warnings := b.Log.FilterLevelExact(1)
			failed := warnings.FilterMessageSnippet("cannot instrument some classes").Len()
			assert.Equal(t, failed, warnings.Len(), "other warnings")
			if name == "maven" {
				assert.Positive(t, failed, "classes with lambdas")
			}
		})
	}
}

func assertSameCalls(t *testing.T, want, got map[uint64]called) {
	t.Helper()
	different := 0
	for sequence, w := range want {
		if g, ok := got[sequence]; (!ok || g != w) && different < 10 {
			different++
			assert.Fail(t, fmt.Sprintf("event %d: expected %+v, got %+v (there: %v)", sequence, w, g, ok))
		}
	}
	assert.Len(t, got, len(want))
}

func TestTheSizesOfReadsChangeNothing(t *testing.T) {
	c := openCapture(t, "shop")
	want := wanted(t, "shop")
	for _, most := range []int{40, 1, 5_000} {
		if testing.Short() && most != 40 {
			continue
		}
		t.Run(fmt.Sprintf("at most %d bytes", most), func(t *testing.T) {
			b := newBed(t, quickly, withDataConnections(len(c.Data)))
			var mu sync.Mutex
			random := rand.New(rand.NewPCG(1, uint64(most)))
			play(b, c, func() int {
				mu.Lock()
				defer mu.Unlock()
				return 1 + random.IntN(most)
			})
			assertSameCalls(t, want, b.only().events)
		})
	}
}
