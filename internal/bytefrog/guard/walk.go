// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"encoding/binary"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

// walked is what was found in the front of some bytes.
type walked struct {
	// taken is how many bytes are whole messages; kept how many of them are left, at the
	// front, when those that are not for the run are taken out.
	taken, kept int
	// events is how many messages have a number; dropped how many of them were taken out.
	events, dropped int
	// next is one more than the highest number, as far as was known before or is seen.
	next uint64
	// reported says that the agent has reported an error.
	reported bool
}

// walk goes over the whole messages at the front of b, the highest number before which
// was next - 1, and remembers the names among them. It changes nothing in b.
//
// All call events begin alike, so their size is all that has to be known of them. A
// branch for each type lets the processor go ahead of itself, where a table of sizes
// makes it wait. Each goes on by itself, the most frequent first, which takes a quarter less
// time than a switch that says the size.
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
		w.other(b[at:at+size], n)
		at += size
	}
}

// other takes a message that is no call event, or one of so few bytes that it ends them.
func (w *walked) other(m []byte, n *names) {
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

// walkTranslated is walk for a run that did not begin with the agent's: in place, numbers
// and times become the run's, and what has a number before the run is taken out.
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
		w.pass(b, size, keep)
	}
}

// pass goes behind a message, which is kept or taken out.
func (w *walked) pass(b []byte, size int, keep bool) {
	if keep {
		if w.kept < w.taken {
			copy(b[w.kept:], b[w.taken:w.taken+size])
		}
		w.kept += size
	}
	w.taken += size
}

// translateEvents makes the call events that come next the run's, up to one that is before
// the run, but for the last few bytes. Nothing may have been taken out. It is nearly all that
// is done for a run, so it counts as the run does, where no number has to be unwrapped: what
// is below zero there is before the run.
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

// translateNumbered makes the number and the time of a call event or marker the run's, and
// reports whether it is for the run.
func (w *walked) translateNumbered(m []byte, t translation) bool {
	// What stands in all of them, so that one comparison is enough.
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

// translate makes one message the run's, and reports whether it is for the run.
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
