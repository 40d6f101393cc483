// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package merge_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/ctf/merge"
)

// written are the packets of a stream, and the expected results.
var (
	written = []packet{
		{sequence: 3, begin: 1, end: 9, discarded: 4, events: at(2, 3)},
		{sequence: 4, begin: 9, end: 9, discarded: 4},
		{sequence: 5, begin: 10, end: 20, discarded: 4, events: at(11, 12, 13)},
		{sequence: 6, begin: 21, end: 30, discarded: 4, events: at(22)},
	}
	writtenOut = []string{"a 2", "a 3", "a 11", "a 12", "a 13", "a 22"}
)

// A second Merger continues at any position of the first one.
func TestAStreamContinuesAtItsPosition(t *testing.T) {
	for n := range len(writtenOut) + 1 {
		first := newBed(t, merge.Options{})
		s := first.stream("a")
		for _, p := range written {
			s.Packet(p.bytes(), nil)
		}
		for events := 0; events < n; {
			if first.Next() == merge.Event {
				events++
			}
		}
		at := s.Position()
		for from := 0; from < len(written) && written[from].sequence <= at.Next; from++ {
			second := newBed(t, merge.Options{})
			second.stream("a").Resume(at)
			for _, p := range written[from:] {
				second.stream("a").Packet(p.bytes(), nil)
			}
			assert.Equal(t, fmt.Sprint(writtenOut[n:]), fmt.Sprint(second.drain()), "after %d events, from packet %d", n, from)
		}
	}
}

func TestPacketsMissingAfterAPositionAreLost(t *testing.T) {
	first := newBed(t, merge.Options{})
	s := first.stream("a")
	assert.False(t, s.Position().Known)
	s.Packet(written[0].bytes(), nil)
	first.drain()
	at := s.Position()
	assert.Equal(t, merge.Position{Known: true, Next: 4, After: true, Discarded: 4, End: 9, First: at.First}, at)

	second := newBed(t, merge.Options{})
	second.stream("a").Resume(at)
	second.stream("a").Promise(0, 9)
	p := written[3]
	p.discarded, p.room = 6, 1
	second.stream("a").Packet(p.bytes(), nil)
	assert.Equal(t, []string{
		"a: lost packets from 9", "a: 2 lost packets to 21", "a 22", "a: discarded events from 22",
	}, second.drain())
}

func TestAnUnknownPositionSkipsNothing(t *testing.T) {
	b := newBed(t, merge.Options{})
	b.stream("a").Resume(merge.Position{})
	b.stream("a").Packet(written[0].bytes(), nil)
	assert.Equal(t, []string{"a 2", "a 3"}, b.drain())
}

func TestPacketsAreReturnedAfterTheirLastEvent(t *testing.T) {
	b := newBed(t, merge.Options{MaxWaiting: 250})
	s, other := b.stream("a"), b.stream("b")
	var packets [][]byte
	for _, p := range written[:3] {
		packets = append(packets, p.bytes())
		require.True(t, s.Wanted())
		s.Packet(packets[len(packets)-1], nil)
	}
	s.Packet(written[3].bytes(), nil)
	assert.False(t, s.Wanted(), "ahead of the other, and %d bytes wait", b.Waiting())
	assert.True(t, other.Wanted(), "the others wait for it")
	other.Promise(0, 12)
	var back [][]byte
	for kind := b.Next(); kind != merge.Nothing; kind = b.Next() {
		if kind == merge.PacketEnd {
			assert.Same(t, s, b.Stream)
			back = append(back, b.Packet)
		} else if kind == merge.Event {
			assert.Equal(t, map[int64]uint64{2: 1, 3: 1, 11: 10, 12: 10}[b.Time], b.Stream.Current().Begin)
		}
	}
	assert.Equal(t, packets[:2], back)
	assert.True(t, s.Wanted())
	s.End()
	assert.False(t, s.Wanted())
	s.Packet(packets[0], nil)
	other.End()
	b.drain()
	assert.Zero(t, b.Waiting())
}
