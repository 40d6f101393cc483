// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package merge_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/callbraid/callbraid/internal/lttng/ctf/merge"
)

// thing is an expected result: an event, or an end of a loss.
type thing struct {
	time   int64
	stream int
	text   string
}

// source makes up the input of a stream and the expected results.
type source struct {
	random *rand.Rand
	number int
	stream *merge.Stream
	// promised is the promise of the stream. key is the time of its last expected result.
	promised, key int64
	ended         bool
	now           uint64
	events        int
	// sequence is the number of the next packet, expected the one after the last packet. The other two are the same
	// for the counter of discarded events.
	sequence, expected uint64
	dropped, counted   uint64
	// any is set if there was a packet. end is the end of the last one.
	any bool
	end int64
	// tail has the text and the begin of a loss that the next input ends.
	tail     string
	tailFrom int64
	largest  uint64 // event in a packet with losses, in bytes
}

// newSource returns a source without input older than now.
func newSource(random *rand.Rand, m *merge.Merger, number int, now uint64) *source {
	return &source{
		random: random, number: number, now: now, promised: math.MinInt64, key: math.MinInt64,
		stream: m.AddStream(uint64(number), fmt.Sprint(number)),
	}
}

// input adds an input and returns the expected results.
func (s *source) input() []thing {
	switch r := s.random.IntN(20); {
	case r == 0:
		return s.finish()
	case r < 8 && s.tail == "": // the merger may join two promises, of which the first ended the loss
		s.now += s.random.Uint64N(10)
		s.promised = int64(s.now)
		s.stream.Promise(0, s.now)
		return nil
	default:
		return s.packet()
	}
}

// reached returns the lower bound of the stream's further results.
func (s *source) reached() int64 { return max(s.promised, s.key) }

// finish ends the stream.
func (s *source) finish() []thing {
	if s.ended {
		return nil
	}
	s.ended = true
	s.stream.End()
	return s.endTail(s.promised)
}

// endTail returns the end of the loss at the end of the last packet.
func (s *source) endTail(at int64) []thing {
	if s.tail == "" {
		return nil
	}
	at = max(at, s.tailFrom)
	s.key = max(s.key, at)
	end := thing{s.key, s.number, fmt.Sprintf("%s to %d", s.tail, at)}
	s.tail = ""
	return []thing{end}
}

// packet adds a packet to the stream, sometimes with losses.
func (s *source) packet() []thing {
	if s.sequence > 0 && s.random.IntN(8) == 0 {
		s.sequence += 1 + s.random.Uint64N(3)
	}
	if s.random.IntN(3) == 0 {
		s.dropped += 1 + s.random.Uint64N(100)
	}
	p := packet{sequence: s.sequence, discarded: s.dropped, room: 1 + s.random.Uint64N(30)}
	s.sequence++
	s.now += s.random.Uint64N(5)
	p.begin = s.now
	for range s.random.IntN(12) {
		s.now += s.random.Uint64N(4)
		p.events = append(p.events, event{s.now, fmt.Sprintf("%d.%d %s", s.number, s.events, text(s.random.IntN(20)))})
		s.events++
	}
	s.now += s.random.Uint64N(5)
	p.end = s.now
	out := s.expect(&p)
	s.end, s.promised = int64(p.end), int64(p.end)
	s.stream.Packet(p.bytes(), nil)
	return out
}

// begun is a begin or an end of a loss after a number of events of a packet.
type begun struct {
	after int
	time  int64
	text  string
}

// expect returns the expected results of a packet: its losses, sorted by place and time, among its events.
func (s *source) expect(p *packet) []thing {
	var marks []begun
	loss := func(kind string, count uint64, first int, from int64, last int, to int64) {
		marks = append(marks,
			begun{first, from, fmt.Sprintf("%d: begin of %d %s from %d", s.number, count, kind, from)},
			begun{last, max(from, to), fmt.Sprintf("%d: end of %d %s to %d", s.number, count, kind, max(from, to))})
	}
	begin, end, all := int64(p.begin), int64(p.end), math.MaxInt
	dropped, missing, first := p.discarded-s.counted, p.sequence-s.expected, !s.any
	follows := !first && begin == s.end
	before := s.promised
	if before == math.MinInt64 {
		before = begin
	}
	s.expected, s.counted, s.any = p.sequence+1, p.discarded, true
	second, at := all, end
	if len(p.events) > 1 {
		second, at = 1, int64(p.events[1].time)
	}
	if missing > 0 {
		loss("lost packets", missing, 0, before, 0, begin)
	}
	tail, tailFrom := s.tail, s.tailFrom
	s.tail = ""
	if dropped > 0 {
		full, from := s.full(p, before)
		if full > 0 && missing == 0 && (begin > before || begin == before && !first) {
			loss("discarded", 0, 0, before, second, at)
		}
		loss("discarded", dropped, full, from, all, end)
		if full > 0 || p.isFull() {
			// The next packet ends it.
			s.tail, s.tailFrom = fmt.Sprintf("%d: end of %d discarded", s.number, dropped), from
			marks = marks[:len(marks)-1]
		}
	}
	if tail != "" && !follows {
		second, at = 0, begin
	}
	if tail != "" {
		marks = append(marks, begun{second, max(tailFrom, at), fmt.Sprintf("%s to %d", tail, max(tailFrom, at))})
	}
	slices.SortStableFunc(marks, func(a, b begun) int { return cmp.Or(cmp.Compare(a.after, b.after), cmp.Compare(a.time, b.time)) })
	return s.among(marks, p.events)
}

// among returns the marks among the events.
func (s *source) among(marks []begun, events []event) []thing {
	var out []thing
	add := func(time int64, text string) {
		s.key = max(s.key, time)
		out = append(out, thing{s.key, s.number, text})
	}
	for i := range len(events) + 1 {
		for ; len(marks) > 0 && (marks[0].after == i || i == len(events)); marks = marks[1:] {
			add(marks[0].time, marks[0].text)
		}
		if i < len(events) {
			add(int64(events[i].time), events[i].text)
		}
	}
	return out
}

// full returns the number of events before the first one that may have been discarded, and the time of the last of
// them.
func (s *source) full(p *packet, before int64) (int, int64) {
	for _, e := range p.events {
		s.largest = max(s.largest, e.size())
	}
	left := p.room
	full, from := 0, before
	for i := len(p.events); i > 0; i-- {
		if left < s.largest+8 {
			full, from = i, int64(p.events[i-1].time)
		}
		left += p.events[i-1].size()
	}
	return full, from
}
