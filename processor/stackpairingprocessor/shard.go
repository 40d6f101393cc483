// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingprocessor

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/client"

	"github.com/callbraid/callbraid/internal/callevent"
	"github.com/callbraid/callbraid/processor/stackpairingprocessor/internal/pairing"
)

// shardCount is how many shards streams are spread over: more than most
// machines have cores, so that two streams seldom wait for each other.
const shardCount = 64

// shard owns the call streams whose IDs fall to it. Its lock is taken once for
// each batch, not for each event. Spans are handed on without it, but for those
// that are too many to be finished at once.
type shard struct {
	settings *pairing.Settings
	accounts *accounts

	mu      sync.Mutex
	streams map[callevent.StreamID]*stream
}

// stream is a call stream with what the processor knows of it beside its calls.
type stream struct {
	*pairing.Stream
	origin *origin
	// client is who sent its last batch, and heard is when that came.
	client client.Info
	heard  time.Duration
	// size is what it holds, as counted in the accounts.
	size size
}

// finished is what one stream finished, on its way to the next component.
type finished struct {
	origin *origin
	client client.Info
	pairing.Output
}

// accounts sum up what all streams hold, and count what happens to them.
type accounts struct {
	telemetry               *telemetry
	streams, bytes, waiting atomic.Int64
}

// settle counts what s holds now, and what it counted into f.
func (a *accounts) settle(s *stream, f *finished) {
	after := sizeOf(s.Stream)
	a.bytes.Add(after.bytes - s.size.bytes)
	a.waiting.Add(after.waiting - s.size.waiting)
	a.telemetry.change(s.size, after)
	a.telemetry.add(&f.Counters)
	s.size = after
}

func (a *accounts) countStream(change int64) {
	a.streams.Add(change)
	a.telemetry.ProcessorStackPairingStreams.Add(context.Background(), change)
}

// take gives the batch to its stream, which puts what it finishes into f.
func (sh *shard) take(b *callevent.Batch, c carrier, from client.Info, now time.Duration, f *finished) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	s := sh.streams[b.Stream]
	if s == nil {
		s = &stream{Stream: pairing.NewStream(sh.settings)}
		sh.streams[b.Stream] = s
		sh.accounts.countStream(1)
	}
	if s.origin == nil || !s.origin.is(c, b) {
		s.origin = newOrigin(c, b)
	}
	s.client, s.heard = from, now
	f.origin, f.client = s.origin, s.client
	s.Take(b, now, &f.Output)
	sh.accounts.settle(s, f)
}

// expire gives up what has been waited for long enough, and ends streams that
// nothing was heard of for the idle timeout. Each stream that this concerns
// gets a finished of its own from fresh.
func (sh *shard) expire(now, idle time.Duration, fresh func() *finished) (all []*finished) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for id, s := range sh.streams {
		silent := now-s.heard > idle
		if !silent && !s.Due(now) {
			continue
		}
		f := fresh()
		f.origin, f.client = s.origin, s.client
		s.Expire(now, &f.Output)
		if silent {
			s.End(callevent.CauseIdle, &f.Output)
		}
		sh.accounts.settle(s, f)
		if silent {
			sh.remove(id)
		}
		all = append(all, f)
	}
	return all
}

// end ends all streams.
func (sh *shard) end(cause callevent.Cause, fresh func() *finished) (all []*finished) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for id := range sh.streams {
		all = append(all, sh.endOne(id, cause, fresh()))
	}
	return all
}

// endOldest ends the stream that was silent for longest, unless it is except; nil
// if there is none.
func (sh *shard) endOldest(except callevent.StreamID, cause callevent.Cause, fresh func() *finished) *finished {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	var oldest callevent.StreamID
	for id, s := range sh.streams {
		if id != except && (oldest.IsZero() || s.heard < sh.streams[oldest].heard) {
			oldest = id
		}
	}
	if oldest.IsZero() {
		return nil
	}
	return sh.endOne(oldest, cause, fresh())
}

func (sh *shard) endOne(id callevent.StreamID, cause callevent.Cause, f *finished) *finished {
	s := sh.streams[id]
	f.origin, f.client = s.origin, s.client
	s.End(cause, &f.Output)
	sh.accounts.settle(s, f)
	sh.remove(id)
	return f
}

// remove forgets a stream, which holds next to nothing any more.
func (sh *shard) remove(id callevent.StreamID) {
	s := sh.streams[id]
	sh.accounts.bytes.Add(-s.size.bytes)
	sh.accounts.telemetry.change(s.size, size{})
	sh.accounts.countStream(-1)
	delete(sh.streams, id)
}

// largest gives the stream for which of is largest, and how large.
func (sh *shard) largest(of func(size) int64) (id callevent.StreamID, most int64) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for i, s := range sh.streams {
		if n := of(s.size); n > most {
			id, most = i, n
		}
	}
	return id, most
}

// lighten makes the stream hold less: its oldest gap is given up, or, where
// nothing waits, its names and open frames. It reports false if it is gone.
func (sh *shard) lighten(id callevent.StreamID, f *finished) bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	s := sh.streams[id]
	if s == nil {
		return false
	}
	f.origin, f.client = s.origin, s.client
	if !s.GiveUpOldest(&f.Output) {
		s.Forget(&f.Output)
	}
	sh.accounts.settle(s, f)
	return true
}
