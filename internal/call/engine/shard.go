// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"container/list"
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"go.opentelemetry.io/collector/client"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/callsum"
	"github.com/callbraid/callbraid/internal/call/pairing"
)

// shardCount is larger than the number of cores of most machines, so that two streams seldom
// wait for each other.
const shardCount = 64

// shard owns a part of the call streams. It locks once for each batch, not for each event.
// Spans are delivered without the lock, except when one step finishes very many.
type shard struct {
	settings *pairing.Settings
	accounts *accounts
	shown    SpanAttributesConfig
	// sums is nil if calls are not summed.
	sums   Sums
	states tracestates

	mu      timedMutex
	streams map[callevent.StreamID]*stream
	// standing are the IDs of the streams by standing, the longest silent one first.
	standing [standings]list.List
}

// standing is the evidence that a stream is honest. Streams with less of it end first, see
// boundStreams. It only rises, until the stream ends.
type standing int

const (
	// hasEnded: the stream has ended.
	hasEnded standing = iota
	// isNew: no call has returned, and all of its batches came together.
	isNew
	// hasReturned: calls have returned.
	hasReturned
	// isProven: batches arrived at two times. A million forged streams need a million places
	// for that, not one after the other.
	isProven
	standings
)

// provenAfter is the time after its first batch at which another one proves a stream. A
// hand-over in several batches takes less.
const provenAfter = 100 * time.Millisecond

// stream is a call stream with the engine's own state of it.
type stream struct {
	*pairing.Stream
	origin *origin
	// client is the sender of its last batch, and since is when the first batch arrived.
	client client.Info
	since  time.Duration
	// gapClock knows when the last batch arrived.
	gapClock
	// turn is the number of its last batch among those of all streams. Unlike the clock, it
	// never stands still.
	turn     uint64
	standing standing
	// place is its place in the shard's list of its standing; nil: none yet.
	place *list.Element
	// size is its contents, as counted in the accounts.
	size size
}

// streamMemory is the memory of an ended stream without contents, with its places in the maps
// and lists of its shard.
const streamMemory = int(unsafe.Sizeof(stream{})+unsafe.Sizeof(pairing.Stream{})) + 500

// finished are the finished calls of one stream, on their way to the next component.
type finished struct {
	origin *origin
	client client.Info
	// unheld: the spans are dropped if the next component already refuses others.
	unheld bool
	// sums are increments of one stream, in their order. ended are the origins whose sums end after
	// them.
	sums  []increment
	ended []*origin
	// isPassing: sums counts in accounts.passing.
	isPassing bool
	pairing.Output
}

// deliverSums passes on the sums of a step.
func (f *finished) deliverSums() {
	for i := range f.sums {
		f.sums[i].deliver()
	}
	for _, o := range f.ended {
		o.sums.end()
	}
	clear(f.sums)
	clear(f.ended)
	f.sums, f.ended = f.sums[:0], f.ended[:0]
}

// passSums moves the increments of a step to f. If the stream has ended, so have its sums.
func (s *stream) passSums(f *finished) {
	for _, inc := range f.Output.Sums {
		f.sums = append(f.sums, increment{s.origin, inc})
	}
	clear(f.Output.Sums)
	f.Output.Sums = f.Output.Sums[:0]
	if s.Ended() {
		s.endSums(f)
	}
}

// leaveOrigin ends what the stream has of its origin, before it gets another one. Finished calls
// that wait would get the other one, so their traces are decided first.
func (s *stream) leaveOrigin(f *finished) {
	if s.origin == nil {
		return
	}
	s.endSums(f)
	f.origin, f.client = s.origin, s.client
	s.DecideAll(pairing.EarlyByResource, &f.Output)
	f.Full()
}

// endSums ends the sums of the stream's origin, if it has some.
func (s *stream) endSums(f *finished) {
	if s.origin == nil || s.origin.sums.to == nil || s.origin.sums.ended {
		return
	}
	s.origin.sums.ended = true
	s.takeSums(f)
	f.ended = append(f.ended, s.origin)
}

// takeSums moves the growth of the sums to f.
func (s *stream) takeSums(f *finished) {
	if inc := s.TakeSums(); !inc.IsEmpty() {
		f.sums = append(f.sums, increment{s.origin, inc})
	}
}

// accounts have the sums of all streams, and their telemetry.
type accounts struct {
	telemetry               *telemetry
	streams, bytes, waiting atomic.Int64
	// passing is the number of steps with increments that are not delivered yet.
	passing atomic.Int64
	turn    atomic.Uint64
}

func sizeOf(s *stream) size {
	return size{int64(streamMemory + s.Bytes() + s.origin.bytes), s.UndecidedBytes(), int64(s.Waiting()), int64(s.OpenFrames())}
}

// settle updates the account of the stream, and adds the counters and the sums of f.
func (a *accounts) settle(s *stream, f *finished) {
	s.passSums(f)
	if len(f.sums) > 0 && !f.isPassing {
		f.isPassing = true
		a.passing.Add(1)
	}
	a.measure(s)
	a.telemetry.record(&f.Counters)
}

// measure updates the account of the stream.
func (a *accounts) measure(s *stream) {
	after := sizeOf(s)
	a.bytes.Add(after.bytes - s.size.bytes)
	a.waiting.Add(after.waiting - s.size.waiting)
	a.telemetry.change(s.size, after)
	s.size = after
}

func (a *accounts) countStream(change int64) {
	a.streams.Add(change)
	a.telemetry.Streams.Add(context.Background(), change)
}

// accept passes the batch to its stream, which writes finished calls to f.
func (sh *shard) accept(b *callevent.Batch, c carrier, from client.Info, now time.Duration, f *finished) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	s := sh.streams[b.Stream]
	if s == nil {
		s = &stream{Stream: sh.newStream(b.Stream), since: now}
		sh.streams[b.Stream] = s
		sh.accounts.countStream(1)
	}
	if s.origin == nil || !s.origin.is(c, b) {
		sh.changeOrigin(s, c, b, f)
	}
	s.client, s.turn = from, sh.accounts.turn.Add(1)
	s.noteBatch(b, now, sh.settings.MaxWait)
	f.origin, f.client = s.origin, s.client
	s.Accept(b, s.atLastBatch, &f.Output)
	sh.updateStanding(b.Stream, s, &f.Counters)
	sh.standing[s.standing].MoveToBack(s.place)
	sh.accounts.settle(s, f)
}

// changeOrigin gives the stream the resource and scope of a batch. If only attributes of the scope have changed,
// the sums and the traces of the stream go on: a trace that is kept later has the new attributes.
func (sh *shard) changeOrigin(s *stream, c carrier, b *callevent.Batch, f *finished) {
	next := newOrigin(c, b, sh.shown)
	next.states = sh.states
	if s.origin != nil && s.origin.isExceptForScope(c, b) {
		s.takeSums(f)
		next.sums = s.origin.sums
	} else {
		s.leaveOrigin(f)
		next.sums = &originSums{}
		if sh.sums != nil {
			next.sums.to = sh.sums.Begin()
		}
	}
	s.origin = next
}

// newStream returns a stream without events. Only the selection of traces needs its identity.
func (sh *shard) newStream(id callevent.StreamID) *pairing.Stream {
	if sh.settings.Keep == nil {
		return pairing.NewStream(sh.settings, nil)
	}
	identity := newIdentity(id)
	return pairing.NewStream(sh.settings, identity.random)
}

// updateStanding moves the stream to the list of its standing. counted are the counters of
// its last step.
func (sh *shard) updateStanding(id callevent.StreamID, s *stream, counted *pairing.Counters) {
	now := max(s.standing, isNew)
	switch {
	case s.Ended():
		now = hasEnded
	case s.lastBatch-s.since >= provenAfter:
		now = isProven
	case now == isNew && counted.Returned():
		now = hasReturned
	}
	if s.place == nil || now != s.standing {
		sh.unlist(s)
		s.standing, s.place = now, sh.standing[now].PushBack(id)
	}
}

// unlist removes the stream from its list.
func (sh *shard) unlist(s *stream) {
	if s.place != nil {
		sh.standing[s.standing].Remove(s.place)
		s.place = nil
	}
}

// expire gives up overdue numbers, and ends streams that were silent for the idle timeout. It
// returns the results, each with an output from fresh.
func (sh *shard) expire(now, idle time.Duration, fresh func() *finished) (all []*finished) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for id, s := range sh.streams {
		silent, gapTime := now-s.lastBatch > idle, s.at(now, sh.settings.MaxWait)
		if !silent && !s.Due(gapTime) {
			continue
		}
		f := fresh()
		f.origin, f.client = s.origin, s.client
		s.Expire(gapTime, &f.Output)
		if silent {
			s.End(callevent.CauseIdle, &f.Output)
		}
		sh.updateStanding(id, s, &f.Counters)
		sh.accounts.settle(s, f)
		if silent {
			sh.remove(id)
		}
		all = append(all, f)
	}
	return all
}

// end ends all streams. isDeaf: a step may stay in a call of the next component. If it has the lock, the streams do not end.
func (sh *shard) end(cause callevent.Cause, isDeaf bool, fresh func() *finished) (all []*finished) {
	if !isDeaf {
		sh.mu.Lock()
	} else if !sh.mu.lockWithin(lockPatience) {
		return nil
	}
	defer sh.mu.Unlock()
	for id := range sh.streams {
		all = append(all, sh.endOne(id, cause, fresh()))
	}
	return all
}

// longestSilent has, for each standing, the longest silent stream and the number of streams.
type longestSilent [standings]struct {
	in    *shard
	id    callevent.StreamID
	turn  uint64
	count int
}

// addLongestSilent adds the shard's streams. The stream except does not count as silent.
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

// remove removes a stream that has ended.
func (sh *shard) remove(id callevent.StreamID) {
	s := sh.streams[id]
	sh.unlist(s)
	sh.accounts.bytes.Add(-s.size.bytes)
	sh.accounts.telemetry.change(s.size, size{})
	sh.accounts.countStream(-1)
	delete(sh.streams, id)
}

// takeSums passes the growth of the sums of the shard's streams on. If a step delivers spans under the
// lock, the sums stay where they are until the next time. Then takeSums reports false.
func (sh *shard) takeSums() bool {
	if !sh.mu.lockWithin(lockPatience) {
		return false
	}
	ids := slices.Collect(maps.Keys(sh.streams))
	sh.mu.Unlock()
	for _, id := range ids {
		if !sh.mu.lockWithin(lockPatience) {
			return false
		}
		if o, inc := sh.takeSumsOf(id); o != nil {
			o.sums.to.Add(&inc, &o.Source)
			o.sums.mu.Unlock()
		}
	}
	return true
}

// lockPatience is longer than a step has the lock, unless the step delivers spans.
const lockPatience = 20 * time.Millisecond

// takeSumsOf takes the growth of a stream, if there is some. It locks the sums of the origin, so
// that those of a later step are added after it. The caller has locked the shard, which
// takeSumsOf unlocks.
func (sh *shard) takeSumsOf(id callevent.StreamID) (*origin, callsum.Increment) {
	defer sh.mu.Unlock()
	s := sh.streams[id]
	if s == nil {
		return nil, callsum.Increment{}
	}
	inc := s.TakeInterval()
	sh.accounts.measure(s)
	if inc.IsEmpty() {
		return nil, inc
	}
	s.origin.sums.mu.Lock()
	return s.origin, inc
}

// spare frees unused memory of all streams.
func (sh *shard) spare() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for _, s := range sh.streams {
		s.Spare()
		sh.accounts.measure(s)
	}
}

// largest returns the stream with the most memory under a bound, and its bytes.
func (sh *shard) largest(by bound) (id callevent.StreamID, most int64) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for i, s := range sh.streams {
		if bytes := s.size.under(by); bytes > most {
			id, most = i, bytes
		}
	}
	return id, most
}

// appendUndecided appends the streams with traces that are not decided.
func (sh *shard) appendUndecided(all undecidedStreams) undecidedStreams {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for id, s := range sh.streams {
		if since, waits := s.OldestUndecided(); waits {
			all = append(all, undecidedStream{sh, id, since})
		}
	}
	return all
}

// decideUntil decides the traces of the stream that wait since a time or longer, the oldest first, until
// that is enough. It returns the time since which the oldest of the others waits. It reports false if
// none does.
func (sh *shard) decideUntil(id callevent.StreamID, last time.Duration, enough func() bool, f *finished) (since time.Duration, waits bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	s := sh.streams[id]
	if s == nil {
		return 0, false
	}
	f.origin, f.client = s.origin, s.client
	for since, waits = s.OldestUndecided(); waits && since <= last && !enough(); since, waits = s.OldestUndecided() {
		s.DecideOldest(&f.Output)
	}
	s.Spare()
	sh.accounts.settle(s, f)
	return since, waits
}

// freeMemory frees memory of the stream under a bound, if the stream is there, and returns the bytes that it held:
//
//  1. For the memory budget it decides the traces of the stream early.
//  2. If that frees nothing, the stream gives up its gaps, oldest first, until memory is free.
//  3. If no event waits either, it forgets its names and open frames.
//  4. If that frees nothing, the stream ends.
func (sh *shard) freeMemory(id callevent.StreamID, by bound, f *finished) (held int64) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	s := sh.streams[id]
	if s == nil {
		return 0
	}
	held = s.size.under(by)
	f.origin, f.client = s.origin, s.client
	now := func() int64 {
		size := sizeOf(s)
		return size.under(by)
	}
	before := now()
	freed := by == boundBudget && s.DecideAll(pairing.EarlyByBudget, &f.Output)
	for now() >= before && s.GiveUpOldest(&f.Output) {
		freed = true
	}
	if !freed {
		s.Forget(&f.Output)
		if now() >= before {
			sh.endOne(id, callevent.CauseLimit, f)
			return held
		}
	}
	sh.updateStanding(id, s, &f.Counters)
	sh.accounts.settle(s, f)
	return held
}

// maxSpansPerCall bounds the spans of one call to the next component.
const maxSpansPerCall = 2048

// maxBytesPerCall bounds the bytes of one call, approximately. gRPC and Kafka refuse more
// than a few MiB, and names can be long.
const maxBytesPerCall = 2 << 20

// fitting is the number of spans for one call to the next component, at least one.
func (f *finished) fitting(spans []pairing.Call) int {
	const spanBytes, throwBytes, attributeBytes = 256, 64, 16
	size := 0
	for i := range spans {
		s := &spans[i]
		size += spanBytes + len(s.Function.Qualified) + len(s.Function.Display) + len(s.Function.Text) +
			len(s.Function.File) + len(s.LaneName) + len(s.ErrorType)
		for _, t := range f.Throws[s.Throws.From:s.Throws.To] {
			size += throwBytes + len(t.Type)
		}
		for _, a := range f.Attributes[s.Attributes.From:s.Attributes.To] {
			size += attributeBytes + len(a.Key) + len(a.Value.Str())
		}
		if size > maxBytesPerCall && i > 0 {
			return i
		}
	}
	return len(spans)
}
