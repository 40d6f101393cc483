// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package merge_test

import (
	"fmt"
	"math"
	"math/rand/v2"

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
	// any is set if there was a packet.
	any     bool
	largest uint64 // event in a packet with losses, in bytes
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
		s.ended = true
		s.stream.End()
		return nil
	case r < 8:
		s.now += s.random.Uint64N(10)
		s.promised = int64(s.now)
		s.stream.Promise(0, s.now)
		return nil
	default:
		return s.packet()
	}
}

// packet adds a packet to the stream, sometimes with losses.
func (s *source) packet() []thing {
	if s.sequence > 0 && s.random.IntN(8) == 0 {
		s.sequence += 1 + s.random.Uint64N(3)
	}
	if s.random.IntN(3) == 0 {
		s.dropped += 1 + s.random.Uint64N(100)
	}
	p := packet{sequence: s.sequence, discarded: s.dropped, room: s.random.Uint64N(30)}
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
	s.promised = int64(p.end)
	s.stream.Packet(p.bytes(), nil)
	return out
}

// expect returns the expected results of a packet.
func (s *source) expect(p *packet) []thing {
	var out []thing
	add := func(time int64, text string, arguments ...any) {
		s.key = max(s.key, time)
		out = append(out, thing{s.key, s.number, fmt.Sprintf(text, arguments...)})
	}
	before := s.promised
	if before == math.MinInt64 {
		before = int64(p.begin)
	}
	if lost := p.sequence - s.expected; lost > 0 {
		add(before, "%d: begin of %d lost packets from %d", s.number, lost, before)
		add(int64(p.begin), "%d: end of %d lost packets to %d", s.number, lost, p.begin)
	}
	dropped, complete, first := p.discarded-s.counted, p.sequence == s.expected, !s.any
	s.expected, s.counted, s.any = p.sequence+1, p.discarded, true
	full, from := -1, before
	if dropped > 0 {
		full, from = s.full(p, before)
	}
	if full > 0 && complete && (int64(p.begin) > before || int64(p.begin) == before && !first) {
		add(before, "%d: begin of 0 discarded from %d", s.number, before)
		add(int64(p.begin), "%d: end of 0 discarded to %d", s.number, p.begin)
	}
	for i := range len(p.events) + 1 {
		if i == full {
			add(from, "%d: begin of %d discarded from %d", s.number, dropped, from)
		}
		if i < len(p.events) {
			add(int64(p.events[i].time), "%s", p.events[i].text)
		}
	}
	if dropped > 0 {
		add(int64(p.end), "%d: end of %d discarded to %d", s.number, dropped, max(int64(p.end), from))
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
