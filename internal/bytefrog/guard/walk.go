// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"encoding/binary"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

// walked describes the whole messages at the front of some bytes.
type walked struct {
	// taken is the number of bytes of whole messages. kept is the number of bytes at the front that belong to the run.
	taken, kept int
	// events is the number of messages with a number, and dropped how many of them were removed.
	events, dropped int
	// next is one more than the highest number of all messages so far.
	next uint64
	// reported: the agent has reported an error.
	reported bool
}

// walk reads the whole messages at the front of b, and remembers their names. The highest number before them was one
// less than next. It does not change b.
//
// All call events begin alike, so only their size differs. A branch for each type lets the processor predict the next
// message; a table of sizes makes it wait. The branches are in order of frequency, and each adds its own size. That
// takes a quarter less time than a switch that returns the size.
func walk(b []byte, next uint64, n *names) (w walked, err error) {
	w.next = next
	at := 0
	for {
		low := uint32(w.next)
		events := 0
		begin := low
		for at <= len(b)-bytefrog.MaxEventSize {
			sequence := binary.BigEndian.Uint32(b[at+sequenceOffset : at+sequenceOffset+4])
			kind := bytefrog.MessageType(b[at])
			if kind == bytefrog.TypeMethodEntry {
				at += bytefrog.MethodEntrySize
			} else if kind == bytefrog.TypeMethodExit {
				at += bytefrog.MethodExitSize
			} else if kind == bytefrog.TypeException {
				at += bytefrog.ExceptionSize
			} else if kind == bytefrog.TypeExceptionBubble {
				at += bytefrog.ExceptionBubbleSize
			} else {
				break
			}
			if int32(sequence-low) >= 0 {
				low = sequence + 1
			}
			events++
		}
		w.next += uint64(low - begin)
		w.events += events
		size, err := bytefrog.DataSize(b[at:], bytefrog.MaxString)
		if size == 0 || err != nil {
			w.taken, w.kept = at, at
			return w, err
		}
		w.noteOther(b[at:at+size], n)
		at += size
	}
}

// noteOther notes a message after the fast loop: not a call event, or one of the last bytes.
func (w *walked) noteOther(m []byte, n *names) {
	switch t := bytefrog.MessageType(m[0]); {
	case t.IsEvent(), t == bytefrog.TypeMarker:
		w.next = max(w.next, unwrap(w.next, binary.BigEndian.Uint32(m[sequenceOffset:]))+1)
		w.events++
	case t == bytefrog.TypeError:
		w.reported = true
	default:
		n.remember(m)
	}
}

// walkTranslated is walk for a run that began later than the agent. It changes numbers and times to the run's in place,
// and removes messages with a number before the run.
func walkTranslated(b []byte, next uint64, n *names, t translation) (w walked, err error) {
	w.next = next
	for {
		if w.kept == w.taken {
			w.translateEvents(b, t)
		}
		size, err := bytefrog.DataSize(b[w.taken:], bytefrog.MaxString)
		if size == 0 || err != nil {
			return w, err
		}
		m := b[w.taken : w.taken+size]
		keep := w.translate(m, n, t)
		w.advance(b, size, keep)
	}
}

// advance moves past a message, which is kept or removed.
func (w *walked) advance(b []byte, size int, keep bool) {
	if keep {
		if w.kept < w.taken {
			copy(b[w.kept:], b[w.taken:w.taken+size])
		}
		w.kept += size
	}
	w.taken += size
}

// translateEvents translates the following call events, except in the last few bytes, up to an event before the run. No
// message may have been removed. Nearly all data passes here. So it uses the run's numbers, which need no unwrapping: a
// number below zero is before the run.
func (w *walked) translateEvents(b []byte, t translation) {
	at, events := w.taken, 0
	next := int64(w.next - t.since)
	for at <= len(b)-bytefrog.MaxEventSize {
		m := b[at : at+bytefrog.MaxEventSize]
		number := binary.BigEndian.Uint32(m[sequenceOffset:]) - uint32(t.since)
		ahead := int64(int32(number - uint32(next)))
		if next+ahead < 0 {
			break
		}
		kind := bytefrog.MessageType(m[0])
		if kind == bytefrog.TypeMethodEntry {
			at += bytefrog.MethodEntrySize
		} else if kind == bytefrog.TypeMethodExit {
			at += bytefrog.MethodExitSize
		} else if kind == bytefrog.TypeException {
			at += bytefrog.ExceptionSize
		} else if kind == bytefrog.TypeExceptionBubble {
			at += bytefrog.ExceptionBubbleSize
		} else {
			break
		}
		if ahead >= 0 {
			next += ahead + 1
		}
		binary.BigEndian.PutUint32(m[sequenceOffset:], number)
		binary.BigEndian.PutUint32(m[timeOffset:], t.time(binary.BigEndian.Uint32(m[timeOffset:])))
		events++
	}
	w.next = t.since + uint64(next)
	w.events += events
	w.taken, w.kept = at, at
}

// translateNumbered translates the number and time of a call event or marker, and reports whether it belongs to the
// run.
func (w *walked) translateNumbered(m []byte, t translation) bool {
	// One bounds check is enough for all fields.
	_ = m[sequenceOffset+3]
	number := unwrap(w.next, binary.BigEndian.Uint32(m[sequenceOffset:]))
	w.next = max(w.next, number+1)
	w.events++
	if number < t.since {
		w.dropped++
		return false
	}
	binary.BigEndian.PutUint32(m[sequenceOffset:], uint32(number-t.since))
	binary.BigEndian.PutUint32(m[timeOffset:], t.time(binary.BigEndian.Uint32(m[timeOffset:])))
	return true
}

// translate translates one message, and reports whether it belongs to the run.
func (w *walked) translate(m []byte, n *names, t translation) bool {
	switch kind := bytefrog.MessageType(m[0]); {
	case kind.IsEvent(), kind == bytefrog.TypeMarker:
		return w.translateNumbered(m, t)
	case kind == bytefrog.TypeError:
		w.reported = true
	default:
		n.remember(m)
		translateName(m, t)
	}
	return true
}

// unwrap is bytefrog.Unwrap, but a number below zero is 0.
func unwrap(reference uint64, n uint32) uint64 {
	at := bytefrog.Unwrap(reference, n)
	if int64(at) < 0 {
		return 0
	}
	return at
}
