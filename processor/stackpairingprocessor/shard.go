// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingprocessor

import (
	"container/list"
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
	// live and ended are the IDs of the streams that something may follow in, and
	// of those that have ended, each from the one that was silent for longest.
	live, ended list.List
}

// stream is a call stream with what the processor knows of it beside its calls.
type stream struct {
	*pairing.Stream
	origin *origin
	// client is who sent its last batch, and heard is when that came.
	client client.Info
	heard  time.Duration
	// place is where it stands among its shard's live or ended streams.
	among *list.List
	place *list.Element
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
	a.measure(s)
	a.telemetry.add(&f.Counters)
}

// measure counts what s holds now.
func (a *accounts) measure(s *stream) {
	after := sizeOf(s)
	a.bytes.Add(after.bytes - s.size.bytes)
	a.waiting.Add(after.waiting - s.size.waiting)
	a.telemetry.change(s.size, after)
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
	sh.stand(b.Stream, s)
	s.among.MoveToBack(s.place)
	sh.accounts.settle(s, f)
}

// stand puts s behind those that it belongs to, unless it is among them.
func (sh *shard) stand(id callevent.StreamID, s *stream) {
	among := &sh.live
	if s.Ended() {
		among = &sh.ended
	}
	if s.among != among {
		sh.leave(s)
		s.among, s.place = among, among.PushBack(id)
	}
}

// leave takes s from where it stands.
func (sh *shard) leave(s *stream) {
	if s.among != nil {
		s.among.Remove(s.place)
	}
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
		sh.stand(id, s)
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

// spent is what counts where a stream has to make room for another.
type spent struct {
	id    callevent.StreamID
	ended bool
	heard time.Duration
}

// before reports whether s makes room rather than other.
func (s spent) before(other spent) bool {
	if s.ended != other.ended {
		return s.ended
	}
	return s.heard < other.heard
}

// mostSpent finds the stream of the shard that makes room first. It is not except.
func (sh *shard) mostSpent(except callevent.StreamID) (_ spent, ok bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for _, from := range [...]*list.List{&sh.ended, &sh.live} {
		for e := from.Front(); e != nil; e = e.Next() {
			if id := e.Value.(callevent.StreamID); id != except {
				s := sh.streams[id]
				return spent{id: id, ended: s.Ended(), heard: s.heard}, true
			}
		}
	}
	return spent{}, false
}

func (sh *shard) endIfThere(id callevent.StreamID, cause callevent.Cause, f *finished) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.streams[id] != nil {
		sh.endOne(id, cause, f)
	}
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
	sh.leave(s)
	sh.accounts.bytes.Add(-s.size.bytes)
	sh.accounts.telemetry.change(s.size, size{})
	sh.accounts.countStream(-1)
	delete(sh.streams, id)
}

// spare gives memory of all streams back that is not in use.
func (sh *shard) spare() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for _, s := range sh.streams {
		s.Spare()
		sh.accounts.measure(s)
	}
}

// largest gives the stream that holds most, and how much that is.
func (sh *shard) largest() (id callevent.StreamID, most int64) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for i, s := range sh.streams {
		if s.size.bytes > most {
			id, most = i, s.size.bytes
		}
	}
	return id, most
}

// lighten makes the stream, if it is there, hold less. Its gaps are given up,
// oldest first, until memory is free. Where nothing waits in it, it forgets its names
// and open frames, and if that is nothing, it is ended.
func (sh *shard) lighten(id callevent.StreamID, f *finished) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	s := sh.streams[id]
	if s == nil {
		return
	}
	f.origin, f.client = s.origin, s.client
	before := s.Bytes()
	gaps := 0
	for s.Bytes() >= before && s.GiveUpOldest(&f.Output) {
		gaps++
	}
	if gaps == 0 {
		s.Forget(&f.Output)
		if s.Bytes() >= before {
			sh.endOne(id, callevent.CauseLimit, f)
			return
		}
	}
	sh.stand(id, s)
	sh.accounts.settle(s, f)
}
