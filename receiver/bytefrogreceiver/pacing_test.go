// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/stream"
)

// three are data connections of a run whose pipeline takes everything: one is the
// furthest behind and nothing comes on it, the others have something to handle. Too
// much is missing, and whenever anyone looks at the clock a millisecond has passed.
func three(t *testing.T) (idle, middle, first *dataConnection) {
	run := benchmarkRun(t, discard(func(ptrace.Traces) {}))
	var looks atomic.Int64
	run.env.now = func() time.Time { return time.Unix(1000, looks.Add(1)*int64(time.Millisecond)) }
	run.pacing.limit, run.data.expected = 10, 3
	var made [3]*dataConnection
	for i := range made {
		_, conn := net.Pipe()
		d, err := newDataConnection(run, newInput(conn, inputBytes, 1024, time.Minute))
		require.NoError(t, err)
		require.NoError(t, run.data.attach(d))
		d.position.Store(uint64(i) * 1000)
		made[i] = d
	}
	made[1].in.reader.Store(readerBusy)
	made[2].in.reader.Store(readerBusy)
	run.stream.Advance(2001, 20)
	return made[0], made[1], made[2]
}

// What is missing can be lost, or in the agent for want of connections that are read.
func TestConnectionsThatAreAheadDoNotWaitForEachOther(t *testing.T) {
	for name, waits := range map[string]func(d *dataConnection){
		"both in numbers": (*dataConnection).keepPace,
		"one in numbers, the other in time": func(d *dataConnection) {
			d.keepTime([]bytefrog.Event{{Sequence: 5000}}, d.run.env.now())
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, middle, first := three(t)
			done := make(chan struct{}, 2)
			for d, wait := range map[*dataConnection]func(*dataConnection){middle: (*dataConnection).keepPace, first: waits} {
				go func() {
					wait(d)
					// It reads on, and nothing comes.
					d.in.reader.Store(readerNone)
					done <- struct{}{}
				}()
			}
			for range 2 {
				select {
				case <-done:
				case <-time.After(patience):
					require.Fail(t, "expected the connections to go on")
				}
			}
		})
	}
}

// One that is ahead and waits brings what is missing no sooner; one that handles what
// came does.
func TestWhatIsMissingIsForgivenThoughAnotherWaitsThatIsAhead(t *testing.T) {
	_, middle, first := three(t)
	assert.False(t, middle.run.data.othersCaughtUp(middle), "the other handles what came")
	first.waits.Store(true)
	assert.True(t, middle.run.data.othersCaughtUp(middle), "the other waits for this one")
	first.position.Store(1000)
	assert.True(t, middle.run.data.othersCaughtUp(middle), "the other is where this one is")
	first.position.Store(999)
	assert.False(t, middle.run.data.othersCaughtUp(middle), "the other is behind, and goes on first")
}

// Between two looks at a sum that grows, more can seem to have come than there is.
func TestNothingIsForgivenThatIsNotMissing(t *testing.T) {
	var n stream.Stream
	p := pacing{limit: 10}
	n.Advance(0, 1000)
	assert.False(t, p.tooFar(&n))
	assert.Zero(t, p.forgiven.Load())
	n.Advance(1010, 0)
	assert.False(t, p.tooFar(&n), "as many are missing as may be")
	n.Advance(1011, 0)
	assert.True(t, p.tooFar(&n))
}

// The name of an event can stand on its own connection, which is not read meanwhile.
func TestNamesAreNotGivenUpOnWhileTheirConnectionWaits(t *testing.T) {
	_, middle, first := three(t)
	middle.in.reader.Store(readerNone)
	first.waits.Store(true)
	_, over := first.reckon(first.run.env.now())
	assert.False(t, over)
	first.waits.Store(false)
	_, over = first.reckon(first.run.env.now())
	assert.True(t, over)
}
