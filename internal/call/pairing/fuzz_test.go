// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// script makes a sequence of batches and calls from bytes. After its end it reads zeros.
type script struct {
	bytes []byte
	// around is the place of the script's preferred numbers.
	around, at uint64
	time       int64
	// renames is the number of renames so far.
	renames int
}

func (s *script) byte() byte {
	if len(s.bytes) == 0 {
		return 0
	}
	b := s.bytes[0]
	s.bytes = s.bytes[1:]
	return b
}

// below is a number below n, from one byte.
func (s *script) below(n int) int { return int(s.byte()) % n }

func (s *script) long() uint64 {
	var b [8]byte
	for i := range b {
		b[i] = s.byte()
	}
	return binary.LittleEndian.Uint64(b[:])
}

// settings are small bounds, so that scripts reach them. bounded reports whether the model does not know some of
// them.
func (s *script) settings() (settings Settings, bounded bool) {
	settings = wide()
	what := s.byte()
	settings.MaxClockJump = []int64{1, 1000, testJump, math.MaxInt64}[what&3]
	settings.MaxEvents = []int{1 << 10, 1, 7, 64}[what>>2&3]
	if what&16 != 0 {
		settings.MaxSpansPerTrace = 1 + s.below(4)
		settings.TraceRoot = func(qualified string) bool { return strings.HasPrefix(qualified, "root") }
	}
	if what&32 != 0 {
		settings.MinDuration, settings.MaxDepth = int64(s.below(40)), s.below(5)
		settings.DropTruncated = s.below(2) == 1
	}
	if what&64 != 0 {
		settings.MaxFrames, settings.MaxThrows = 1+s.below(5), s.below(3)
	}
	if what&128 != 0 {
		settings.MaxLanes, settings.MaxNameBytes = 1+s.below(3), 100*s.below(30)
		return settings, true
	}
	return settings, false
}

// sequence is mostly near the last number, and rarely any number.
func (s *script) sequence() uint64 {
	switch b := s.byte(); {
	case b < 160:
		s.at++
	case b < 200:
		s.at += uint64(b - 160)
	case b < 245:
		s.at -= min(uint64(b-200), s.at)
	case b < 252:
		return min(s.around+uint64(b-245), callevent.MaxSequence)
	default:
		s.around = min(s.long(), callevent.MaxSequence)
		s.at = s.around
	}
	s.at = min(s.at, callevent.MaxSequence)
	return s.at
}

func (s *script) event() (h happened) {
	h.sequence = s.sequence()
	switch b := s.byte(); {
	case b < 200:
		s.time += int64(b)
	case b < 240:
		s.time -= int64(b-200) * 30
	default:
		s.time += (int64(b) - 248) * testJump / 2
	}
	h.time = testEpoch + s.time
	what := s.byte()
	h.kind = callevent.Kind(1 + what%6)
	h.function = testFunctions[int(what>>3)%len(testFunctions)]
	h.exception = testExceptions[int(what>>5)%len(testExceptions)]
	lane := s.byte()
	h.lane = callevent.Lane{ID: uint64(lane % 5), Name: string('a' + rune(lane>>6))}
	h.line = uint32(lane)
	if lane%16 == 15 {
		h.attributes = []Attribute{{"key", callevent.IntValue(int64(what))}}
	}
	if h.kind == callevent.KindExitTop {
		h.function = nil
	}
	return plain(h)
}

func (s *script) barrier() callevent.Barrier {
	at := s.sequence()
	switch b := s.byte(); {
	case b < 8:
		return callevent.End(at, callevent.CauseEnded)
	case b < 120:
		return callevent.Point(at, callevent.CauseSuspended)
	case b < 250:
		return callevent.Interval(at, min(at+uint64(b-120), callevent.MaxSequence), callevent.CauseDiscarded)
	default:
		return callevent.Interval(at, max(at, min(s.long(), callevent.MaxSequence)), callevent.CauseDropped)
	}
}

// rename is a rename at about the present time.
func (s *script) rename() callevent.Rename {
	what := s.byte()
	r := callevent.Rename{
		Lane: uint64(what % 5), Name: string('p' + rune(what>>6)), First: what&32 != 0,
		Time: testEpoch + s.time + int64(s.byte()) - 64, Rank: uint32(s.byte() % 4),
	}
	if what>>3&3 == 2 {
		r.Time += testJump * 100
	}
	r.Time = max(r.Time, 0)
	return r
}

// mostRenames is the number of renames of a lane that the stream never forgets.
const mostRenames = keptRenames - 1

func (s *script) delivery() (d delivery) {
	shape := s.byte()
	for range shape % 32 {
		d.events = append(d.events, s.event())
	}
	for range shape >> 5 % 4 {
		d.barriers = append(d.barriers, s.barrier())
	}
	if shape&128 != 0 {
		d.next = s.sequence()
	}
	for range min(s.below(4), mostRenames-s.renames) {
		d.renames = append(d.renames, s.rename())
		s.renames++
	}
	d.received = (testEpoch + s.time + int64(s.byte())*testJump/16) &^ (receivedGrain - 1)
	for i := range d.events {
		d.events[i].received = d.received
	}
	return d
}

// FuzzStream: for any batches and calls a stream does not panic, does not loop, and follows the rules.
func FuzzStream(f *testing.F) {
	f.Add([]byte{})
	for seed := range uint64(40) {
		r := plan{seed: seed}.dice(30)
		b := make([]byte, 100+r.IntN(1500))
		for i := range b {
			b[i] = byte(r.Uint32())
			// Most bytes are small, and continue the stream.
			if r.IntN(3) > 0 {
				b[i] &= 0x7f
			}
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4<<10 {
			return
		}
		playScript(t, &script{bytes: data})
	})
}

// callsIn is the number of calls, with all repeated ones.
func callsIn(spans []finished) (calls uint64) {
	for _, s := range spans {
		calls += max(1, s.Repeated.Calls)
	}
	return calls
}

func playScript(t *testing.T, s *script) {
	// Of a third of the scripts all traces are kept, most of them in pieces. Of some of these repeated calls are folded,
	// which the model does not know.
	selecting, folding := len(s.bytes)%3 == 0, len(s.bytes)%9 == 0
	settings, bounded := s.settings()
	if selecting {
		settings.Keep = &Keep{MaxBytes: 8 << 10, DecideAfter: testWait}
	}
	if folding {
		settings.Keep.FoldShorterThan = 1000
	}
	r, m := newRig(&settings, 1), newModel(&settings, 1)
	if s.byte()%4 == 0 {
		r.out.MaxCalls = 1 + s.below(4)
	}
	r.out.Full = r.full
	compare := func(what string) {
		if r.fault == "" && (folding || selecting && !r.stream.Ended()) {
			return
		}
		r.counters.Keep = KeepCounters{}
		if r.fault == "" && !bounded {
			r.compare(m)
		}
		if r.fault != "" {
			t.Fatalf("after %s: %s", what, r.fault)
		}
	}
	for len(s.bytes) > 0 {
		switch b := s.byte(); {
		case b < 200:
			d := s.delivery()
			r.take(d)
			m.take(d, r.now)
		case b < 225:
			r.now += time.Duration(b-200) * testWait / 16
			due := r.stream.Due(r.now)
			before := r.counters
			r.expire()
			m.expire(r.now)
			if !due && r.counters != before {
				t.Fatal("expiry changed something that was not due")
			}
		case b < 240:
			waits := r.stream.Waiting() > 0
			if r.giveUpOldest() != waits {
				t.Fatalf("gave up the oldest: %t, waiting: %t", !waits, waits)
			}
			m.giveUpOldest()
		case b < 243:
			r.stream.Forget(&r.out)
			r.collect()
			bounded = true
		case b < 244:
			r.end(callevent.CauseIdle)
			m.end(callevent.CauseIdle)
		}
	}
	compare("the script")
	r.end(callevent.CauseShutdown)
	m.end(callevent.CauseShutdown)
	compare("the end")
	if folding {
		if calls := callsIn(r.spans); calls != r.counters.Finished {
			t.Fatalf("%d calls in the output, expected %d", calls, r.counters.Finished)
		}
		return
	}
	if wrong := wrongSpans(&settings, r.spans, r.counters.Breaks[callevent.CauseClock] > 0); wrong != "" {
		t.Fatal(wrong)
	}
	if !bounded {
		if wrong := wrongCounters(r.counters, r.spans, m.paired, uint64(len(m.all))); wrong != "" {
			t.Fatal(wrong)
		}
	}
	if r.stream.Waiting() != 0 || r.stream.OpenFrames() != 0 || !r.stream.Ended() {
		t.Fatal("something is left after the end")
	}
}
