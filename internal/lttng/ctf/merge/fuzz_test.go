// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package merge_test

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/callbraid/callbraid/internal/lttng/ctf/merge"
)

// script makes up the inputs of streams from the bytes of a fuzz test.
type script struct {
	data    []byte
	now     time.Duration
	streams []*merge.Stream
	ended   map[*merge.Stream]bool
	over    map[*merge.Stream]bool
	packets int // packets
}

// number returns up to n bytes as a number.
func (w *script) number(n int) uint64 {
	var b [8]byte
	w.data = w.data[copy(b[:n], w.data):]
	return binary.LittleEndian.Uint64(b[:])
}

// time returns a time, mostly near, sometimes anywhere.
func (w *script) time() uint64 {
	if t := w.number(1); t < 250 {
		return t
	}
	return w.number(8)
}

func (w *script) packet() []byte {
	p := packet{
		class: uint32(w.number(1) % 4), begin: w.time(), end: w.time(),
		sequence: w.time(), discarded: w.time(), room: w.number(1),
	}
	for range w.number(1) % 8 {
		p.events = append(p.events, event{w.time(), text(int(w.number(1) % 30))})
	}
	b := p.bytes()
	if cut := w.number(1); cut > 240 {
		b = b[:len(b)-min(len(b), int(cut-240))]
	}
	if i := w.number(1); i > 200 {
		b[int(i)%len(b)] ^= byte(w.number(1))
	}
	return b
}

// input adds the next input of a stream.
func (w *script) input(m *merge.Merger) {
	if len(w.streams) == 0 {
		w.streams = append(w.streams, m.AddStream(0, ""))
	}
	op := w.number(1)
	s := w.streams[int(op>>4)%len(w.streams)]
	switch op & 0xf {
	case 0, 1, 2, 3, 4, 5:
		s.Packet(w.packet(), nil)
		if !w.ended[s] {
			w.packets++
		}
	case 6, 7, 8:
		s.Promise(w.number(1)%4, w.time())
	case 9:
		w.ended[s] = true
		s.End()
	case 10:
		s.Replay()
		w.ended[s] = w.over[s]
	case 11:
		s.MarkLoss(merge.Cleared)
	case 12, 13:
		w.streams = append(w.streams, m.AddStream(uint64(len(w.streams)), ""))
	default:
		w.now += time.Duration(w.number(2))
		m.Advance(w.now)
	}
}

func FuzzMerger(f *testing.F) {
	f.Add([]byte("\x00\x00\x01\x09\x00\x00\x00\x03\x02\x00\x03\x00\x04\x00\x00\x00\x0c\x16\x00\x05"))
	f.Add([]byte{12, 0, 0, 1, 100, 0, 7, 0, 2, 5, 4, 9, 1, 0, 0, 0x16, 0, 6, 14, 255, 255, 0x10, 0, 2, 3, 1, 0, 0, 1, 2, 0, 0, 0, 9, 0x19})
	f.Fuzz(func(t *testing.T, data []byte) {
		trace := newTrace(t)
		if err := trace.Append([]byte(moreText)); err != nil {
			t.Fatal(err)
		}
		m := merge.New(trace, merge.Options{MaxDelay: 1000})
		w := &script{data: data, ended: map[*merge.Stream]bool{}, over: map[*merge.Stream]bool{}}
		newest, back := int64(math.MinInt64), 0
		open := map[*merge.Loss]bool{}
		take := func() {
			for kind := m.Next(); kind != merge.Nothing; kind = m.Next() {
				if m.Late && (m.Time >= newest || len(open) == 0) {
					t.Fatalf("late %s of %d after %d", kind, m.Time, newest)
				}
				switch {
				case kind == merge.PacketEnd:
					back++
				case kind == merge.StreamEnd:
					w.over[m.Stream] = true
				case kind == merge.LossBegin && open[m.Loss], kind == merge.LossEnd && !open[m.Loss]:
					t.Fatalf("%s of %+v", kind, m.Loss)
				case kind == merge.LossBegin:
					open[m.Loss] = true
				case kind == merge.LossEnd:
					delete(open, m.Loss)
				}
				if !m.Late && m.Time < newest {
					t.Fatalf("%s of %d after %d", kind, m.Time, newest)
				}
				newest = max(newest, m.Time)
			}
		}
		for len(w.data) > 0 && m.Err() == nil {
			w.input(m)
			take()
		}
		for _, s := range w.streams {
			s.End()
		}
		take()
		if m.Err() == nil && (len(open) > 0 || m.Waiting() > 0 || back != w.packets) {
			t.Fatalf("at the end %d losses are open, %d bytes wait, %d of %d packets were returned", len(open), m.Waiting(), back, w.packets)
		}
	})
}
