// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingprocessor

import (
	"container/list"
	"context"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"go.opentelemetry.io/collector/client"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/pairing"
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
	shown    SpanAttributesConfig

	mu      sync.Mutex
	streams map[callevent.StreamID]*stream
	// standing are the IDs of the streams by what they have shown, each from the one
	// that was silent for longest.
	standing [standings]list.List
}

// standing is what a stream has shown of itself. Those that have shown less make room
// first: see boundStreams. It only rises, until the stream ends.
type standing int

const (
	// hasEnded: nothing follows.
	hasEnded standing = iota
	// isNew: no call has returned, and all of its batches came together.
	isNew
	// hasReturned: calls have returned.
	hasReturned
	// isProven: batches came at two times. A million forged streams that show that much
	// take a million places, and not one at a time.
	isProven
	standings
)

// provenAfter is how long after its first batch another one proves a stream: longer than
// a hand-over takes that was cut into several batches.
const provenAfter = 100 * time.Millisecond

// stream is a call stream with what the processor knows of it beside its calls.
type stream struct {
	*pairing.Stream
	origin *origin
	// client is who sent its last batch, heard is when that came, and since when the
	// first did.
	client       client.Info
	heard, since time.Duration
	// turn is the number of its last batch among those of all streams: the clock can stand.
	turn     uint64
	standing standing
	// place is where it stands among those of its shard with the same standing; nil: nowhere
	// yet.
	place *list.Element
	// size is what it holds, as counted in the accounts.
	size size
}

// streamMemory is what a stream takes in which there is nothing and that has ended, with its
// places in the maps and lists of its shard.
const streamMemory = int(unsafe.Sizeof(stream{})+unsafe.Sizeof(pairing.Stream{})) + 500

// finished is what one stream finished, on its way to the next component.
type finished struct {
	origin *origin
	client client.Info
	// unheld: the spans are dropped where the next component refuses others already.
	unheld bool
	pairing.Output
}

// accounts sum up what all streams hold, and count what happens to them.
type accounts struct {
	telemetry               *telemetry
	streams, bytes, waiting atomic.Int64
	turn                    atomic.Uint64
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
		s = &stream{Stream: pairing.NewStream(sh.settings), since: now}
		sh.streams[b.Stream] = s
		sh.accounts.countStream(1)
	}
	if s.origin == nil || !s.origin.is(c, b) {
		s.origin = newOrigin(c, b, sh.shown)
	}
	s.client, s.heard, s.turn = from, now, sh.accounts.turn.Add(1)
	f.origin, f.client = s.origin, s.client
	s.Accept(b, now, &f.Output)
	sh.stand(b.Stream, s, &f.Counters)
	sh.standing[s.standing].MoveToBack(s.place)
	sh.accounts.settle(s, f)
}

// stand puts s behind those that it belongs to, unless it is among them. The counters are
// what was just counted of it.
func (sh *shard) stand(id callevent.StreamID, s *stream, counted *pairing.Counters) {
	now := max(s.standing, isNew)
	switch {
	case s.Ended():
		now = hasEnded
	case s.heard-s.since >= provenAfter:
		now = isProven
	case now == isNew && counted.Returned():
		now = hasReturned
	}
	if s.place == nil || now != s.standing {
		sh.leave(s)
		s.standing, s.place = now, sh.standing[now].PushBack(id)
	}
}

// leave takes s from where it stands.
func (sh *shard) leave(s *stream) {
	if s.place != nil {
		sh.standing[s.standing].Remove(s.place)
		s.place = nil
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
		sh.stand(id, s, &f.Counters)
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

// longestSilent are, of each standing, the stream that was silent for longest, and how
// many there are.
type longestSilent [standings]struct {
	in    *shard
	id    callevent.StreamID
	turn  uint64
	count int
}

// addLongestSilent adds the shard's streams. except is none of those that were silent.
func (sh *shard) addLongestSilent(all *longestSilent, except callevent.StreamID) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for i := range all {
		of := &all[i]
		of.count += sh.standing[i].Len()
		e := sh.standing[i].Front()
		if e != nil && e.Value.(callevent.StreamID) == except {
			e = e.Next()
		}
		if e == nil {
			continue
		}
		id := e.Value.(callevent.StreamID)
		if turn := sh.streams[id].turn; of.in == nil || turn < of.turn {
			of.in, of.id, of.turn = sh, id, turn
		}
	}
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

// lighten makes the stream, if it is there, hold less, and says what it held, in bytes. Its gaps are given up,
// oldest first, until memory is free. Where nothing waits in it, it forgets its names
// and open frames, and if that is nothing, it is ended.
func (sh *shard) lighten(id callevent.StreamID, f *finished) (held int64) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	s := sh.streams[id]
	if s == nil {
		return 0
	}
	held = s.size.bytes
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
			return held
		}
	}
	sh.stand(id, s, &f.Counters)
	sh.accounts.settle(s, f)
	return held
}
