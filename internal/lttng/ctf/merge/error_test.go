// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package merge_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/lttng/ctf/merge"
)

func TestAPacketThatContradictsItsIndexEndsTheTrace(t *testing.T) {
	p := packet{begin: 1, end: 9, discarded: 3, events: at(2)}
	good := merge.Index{Begin: 1, End: 9, Discarded: 3, Content: uint64(len(p.bytes())) * 8}
	for want, change := range map[string]func(*merge.Index){
		"": func(*merge.Index) {},
		"stream class 7 as in the packet's index, got 0":               func(i *merge.Index) { i.StreamClass = 7 },
		"begin 2 as in the packet's index, got 1":                      func(i *merge.Index) { i.Begin = 2 },
		"end 8 as in the packet's index, got 9":                        func(i *merge.Index) { i.End = 8 },
		"number of discarded events 4 as in the packet's index, got 3": func(i *merge.Index) { i.Discarded = 4 },
		"content in bits 80 as in the packet's index, got":             func(i *merge.Index) { i.Content = 80 },
	} {
		b := newBed(t, merge.Options{})
		index := good
		change(&index)
		b.stream("a").Packet(p.bytes(), &index)
		out := b.drain()
		if want == "" {
			assert.NoError(t, b.Err())
			assert.Nil(t, b.Failed())
			assert.Contains(t, out, "a 2")
			continue
		}
		assert.ErrorContains(t, b.Err(), "stream 0 (a): packet of")
		assert.ErrorContains(t, b.Err(), want)
		assert.Empty(t, out)
	}
}

func TestBadPacketsEndTheTrace(t *testing.T) {
	good := packet{begin: 1, end: 9, events: at(2, 3)}
	cut, magic := good.bytes(), good.bytes()
	cut = cut[:len(cut)-5]
	magic[0] = 0
	torn := packet{begin: 1, end: 9, events: at(2)}
	torn.events[0].text = "text"
	noNUL := torn.bytes()
	noNUL[len(noNUL)-1] = 'x'
	for name, c := range map[string]struct {
		bytes []byte
		want  string
	}{
		"shorter than its size": {cut, "unexpected EOF"},
		"not a packet":          {magic, "expected magic 0xc1fc1fc1"},
		"an event cut off":      {noNUL, `event "e": event fields, field "text"`},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, merge.Options{})
			b.stream("b").Promise(0, 5)
			b.stream("a").Packet(c.bytes, nil)
			assert.Empty(t, b.drain())
			assert.ErrorContains(t, b.Err(), "stream 1 (a): ")
			assert.ErrorContains(t, b.Err(), c.want)
			assert.Same(t, b.stream("a"), b.Failed())
			first := b.Err()
			b.stream("a").Packet(good.bytes(), nil)
			b.stream("b").End()
			assert.Empty(t, b.drain(), "no results after an error")
			assert.Same(t, first, b.Err())
		})
	}
}

func TestABadPacketAfterAReplayEndsTheTrace(t *testing.T) {
	b := newBed(t, merge.Options{})
	b.stream("a").Packet((&packet{begin: 1, end: 9, events: at(2, 3)}).bytes(), nil)
	b.stream("a").Replay()
	b.stream("a").Packet(make([]byte, 100), nil)
	b.drain()
	assert.ErrorContains(t, b.Err(), "expected magic")
}

func TestNamesOfKindsAndCauses(t *testing.T) {
	assert.Equal(t, "nothing", merge.Nothing.String())
	assert.Equal(t, "stream end", merge.StreamEnd.String())
	assert.Equal(t, "unknown kind", merge.Kind(99).String())
	assert.Equal(t, "interrupted", merge.Interrupted.String())
	assert.Equal(t, "unknown cause", merge.Cause(99).String())
}
