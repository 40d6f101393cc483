// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package callstream

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// bed is a stream whose batches are unpacked.
type bed struct {
	*Stream
	t   *testing.T
	now time.Time
	// sent and offered are the delivered batches.
	sent, offered []callevent.Batch
	f             *Function
	l             *Lane
}

func newBed(t *testing.T, maxBytes int) *bed {
	b := &bed{t: t, now: time.Unix(100, 0), f: &Function{}, l: &Lane{}}
	b.f.Qualified, b.f.Display, b.f.Text = "shop.buy", "buy", "buy()"
	b.l.ID, b.l.Name = 7, "main"
	b.Stream = New(&Settings{
		TextKey: "example.function", MaxBytes: maxBytes, MaxDelay: time.Second, KeepaliveInterval: time.Minute,
		Now: func() time.Time { return b.now },
	}, b, 0)
	require.NoError(t, b.Open(callevent.StreamID{1}))
	return b
}

func (b *bed) SendBatch(packed callevent.Packed, events int) {
	batch := b.unpack(packed)
	assert.Equal(b.t, events, batch.Len())
	b.sent = append(b.sent, batch)
}

func (b *bed) OfferBatch(packed callevent.Packed) { b.offered = append(b.offered, b.unpack(packed)) }

func (b *bed) DropBatch(events int) { assert.Fail(b.t, "a batch was impossible", "%d events", events) }

func (b *bed) unpack(packed callevent.Packed) (batch callevent.Batch) {
	span := ptrace.NewSpan()
	packed.To(span)
	data, err := callevent.Data(span)
	require.NoError(b.t, err)
	require.NoError(b.t, batch.Unpack(data))
	return batch
}

// call packs an entry and an exit.
func (b *bed) call() {
	for _, kind := range []callevent.Kind{callevent.KindEnter, callevent.KindExit} {
		n := b.AssignNumber()
		b.Pack(kind, n, 1_000_000+int64(n), b.f, b.l, nil)
	}
}

func (b *bed) after(d time.Duration) { b.now = b.now.Add(d) }

func TestABatchIsDeliveredWhenItIsOldEnough(t *testing.T) {
	b := newBed(t, 256<<10)
	b.call()
	b.after(999 * time.Millisecond)
	b.DeliverDue(b.now)
	require.Empty(t, b.sent)
	b.after(time.Millisecond)
	b.DeliverDue(b.now)
	require.Len(t, b.sent, 1)
	assert.Equal(t, 2, b.sent[0].Len())
	assert.EqualValues(t, 2, b.sent[0].Next)
	assert.Equal(t, "buy", b.sent[0].Functions[0].Display)
}

func TestAStreamWithoutEventsOffersEmptyBatches(t *testing.T) {
	b := newBed(t, 256<<10)
	b.call()
	b.Flush()
	b.after(59 * time.Second)
	b.DeliverDue(b.now)
	require.Empty(t, b.offered)
	b.after(time.Second)
	b.DeliverDue(b.now)
	require.Len(t, b.offered, 1)
	assert.Zero(t, b.offered[0].Len())
	assert.EqualValues(t, 2, b.offered[0].Next, "the number below which all is known")
	b.DeliverDue(b.now)
	require.Len(t, b.offered, 1, "one for each interval")
	require.Len(t, b.sent, 1)
}

func TestAFullBatchLosesNoEvent(t *testing.T) {
	b := newBed(t, callevent.MinBatchBytes)
	const calls = 10_000
	for range calls {
		b.call()
	}
	b.Flush()
	require.Greater(t, len(b.sent), 2)
	var next uint64
	for i := range b.sent {
		events := make([]callevent.Event, b.sent[i].Len())
		b.sent[i].Events(events, 0)
		for _, e := range events {
			require.Equal(t, next, e.Sequence)
			require.Equal(t, "buy", b.sent[i].Functions[e.Function].Display)
			next++
		}
	}
	assert.EqualValues(t, 2*calls, next)
}

func TestABatchHasTheBreaksThatConcernItsEvents(t *testing.T) {
	const lost = callevent.CauseDiscarded
	b := newBed(t, 256<<10)
	b.call()
	b.BreakHere(lost)
	b.call()
	b.Flush()
	assert.Equal(t, []callevent.Barrier{callevent.Point(2, lost)}, b.sent[0].Barriers)

	b.BeginBreak(lost)
	assert.True(t, b.IsBroken())
	b.call()
	b.Flush()
	assert.Equal(t, []callevent.Barrier{callevent.Point(2, lost), callevent.Interval(4, 6, lost)}, b.sent[1].Barriers, "the last one before, and the open one")

	b.call()
	b.EndBreak()
	b.Flush()
	assert.False(t, b.IsBroken())
	assert.Equal(t, []callevent.Barrier{callevent.Point(2, lost), callevent.Interval(4, 8, lost)}, b.sent[2].Barriers)

	b.BreakSince(7, lost)
	b.DeliverDue(b.now)
	assert.Zero(t, b.sent[3].Len(), "a new break is delivered without events")
	assert.Equal(t, []callevent.Barrier{callevent.Interval(7, 8, lost)}, b.sent[3].Barriers, "the last one before its numbers")
}

func TestManyBreaksCloseABatch(t *testing.T) {
	b := newBed(t, 256<<10)
	for len(b.sent) == 0 {
		b.call()
		b.BreakHere(callevent.CauseDiscarded)
		b.FlushBreaks()
		require.Less(t, b.Packed(), 4*callevent.MaxBarriers)
	}
	assert.LessOrEqual(t, len(b.sent[0].Barriers), callevent.MaxBarriers)
	assert.EqualValues(t, b.Next(), b.sent[0].Next)
}

func TestTheLastBatchHasTheEnd(t *testing.T) {
	for name, c := range map[string]struct {
		resumes bool
		want    callevent.Barrier
	}{
		"an end":                      {false, callevent.End(2, callevent.CauseDisconnected)},
		"a break, because it resumes": {true, callevent.Point(2, callevent.CauseDisconnected)},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, 256<<10)
			b.call()
			b.Close(callevent.CauseDisconnected, c.resumes)
			require.Len(t, b.sent, 1)
			assert.Equal(t, []callevent.Barrier{c.want}, b.sent[0].Barriers)
			assert.False(t, b.IsOpen())
			assert.Zero(t, b.Held())
		})
	}
}
