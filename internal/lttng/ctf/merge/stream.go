// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"math"
	"time"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// Stream is one stream of the trace.
type Stream struct {
	// ID and Name are the arguments of AddStream.
	ID   uint64
	Name string

	merger *Merger
	rank   rank

	queue queue
	// ended is set after End, over after Next has returned StreamEnd.
	ended, over bool
	// promise is the lower bound for the time of all further input.
	promise int64
	// unresolved is set if the first input needs more metadata.
	unresolved bool

	// head is the kind of the stream's next result, and key its time. Without a head, key is the promise.
	head     head
	key      int64
	headLoss *Loss

	// reader has opened packet, unless that is nil, and read this number of its events.
	reader *ctf.Reader
	packet []byte
	index  *Index // of packet
	read   uint64
	clock  *ctf.Clock // of the stream's class
	known  bool       // the class
	// marks are the ends of losses between the events of the packet.
	marks []mark
	// open is a loss that the next packet or promise closes.
	open *Loss
	// tail is a loss at the end of the last packet, which the next packet or promise closes.
	tail *Loss
	// stopped is set if tracing stopped at promise, provided that the stream continues.
	stopped bool

	// late is open while the stream lags behind. Other streams do not wait for it.
	late *Loss
	// awaited is set while others wait for the stream's input. since is the begin of the wait.
	awaited bool
	since   time.Duration

	// peek reads packets before reader does.
	peek     *ctf.Reader
	largest  uint64 // event in a packet with losses, in bits
	first    FirstPacket
	finished finishedPacket
	resume   *Position
}

// head is the kind of a stream's next result.
type head uint8

const (
	// headNone: the stream has no input, and its key is the promise.
	headNone head = iota
	headEvent
	headLossBegin
	headLossEnd
	headEnd
)

// mark is the begin or the end of a loss. It follows after events of the packet.
type mark struct {
	after uint64
	head  head
	time  int64
	loss  *Loss
}

// afterAll is the place after all events of the packet.
const afterAll = math.MaxUint64

func (s *Stream) behind() bool { return s.late != nil }

// canRun reports whether the stream's head is an event, and the stream may return further ones of the packet without
// the other steps of Merger.Next.
func (s *Stream) canRun() bool {
	return s.head == headEvent && s.late == nil && len(s.marks) == 0 && s.clock != nil
}

// Packet adds the stream's next packet, without the padding after its content. The bytes belong to the Merger until
// PacketEnd. The index may be nil. Otherwise the packet must not contradict it.
func (s *Stream) Packet(packet []byte, index *Index) {
	if s.ended {
		return
	}
	s.merger.waiting += len(packet)
	if index != nil {
		copied := *index
		index = &copied
	}
	s.enqueue(input{kind: inputPacket, packet: packet, index: index})
}

// Promise sets a lower bound for all further input of the stream, as a value of the clock of a stream class. The
// metadata may declare the class later.
func (s *Stream) Promise(class, cycles uint64) {
	in := input{kind: inputPromise, class: class, cycles: cycles}
	if !s.queue.empty() && s.queue.back().kind == inputPromise {
		*s.queue.back() = in
		s.proceed()
		return
	}
	s.enqueue(in)
}

// MarkLoss reports that data may be missing between the previous input and the next one.
func (s *Stream) MarkLoss(cause Cause) { s.enqueue(input{kind: inputLoss, cause: cause}) }

// Replay announces that the stream's packets start again at an earlier one, as they do on a new connection. The
// stream skips packets that it has read. Packets without sequence numbers are skipped if they end no later than the
// last one, and a loss of cause Interrupted precedes the next packet. A stream that has ended continues, unless Next
// has returned its StreamEnd.
func (s *Stream) Replay() {
	if s.over {
		return
	}
	if s.head == headEnd {
		s.idle()
	}
	s.ended = false
	s.enqueue(input{kind: inputReplay})
}

// End ends the stream. Later input is ignored, except Replay, and the Merger does not use later packets.
func (s *Stream) End() {
	s.ended = true
	s.proceed()
}

func (s *Stream) enqueue(in input) {
	if s.ended {
		return
	}
	s.queue.push(in)
	s.proceed()
}

// proceed looks for a head if the stream has none.
func (s *Stream) proceed() {
	if s.head != headNone || s.merger.err != nil {
		return
	}
	s.merger.stopRunning()
	before := s.key
	s.findHead()
	if s != s.merger.last {
		s.reader.Unload()
	}
	if s.head != headNone || s.key > before {
		s.awaited = false
	}
	s.merger.updateOrder(s)
}

// Held returns the approximate memory of the stream in bytes, without its packets.
func (s *Stream) Held() int {
	const stream, ofInput, ofMark = 1 << 10, 100, 100
	held := stream + len(s.Name) + ofInput*cap(s.queue.inputs) + ofMark*cap(s.marks) + s.reader.Held()
	if s.peek != nil {
		held += s.peek.Held()
	}
	return held
}

// Wanted reports whether the caller should add packets to the stream: others may wait for it, or fewer than
// MaxWaiting bytes wait.
func (s *Stream) Wanted() bool {
	return !s.ended && (s.IsEmpty() || s.merger.waiting < s.merger.options.MaxWaiting)
}

// IsEmpty reports whether the stream has no waiting input.
func (s *Stream) IsEmpty() bool { return s.head == headNone && s.queue.empty() }

// Awaited reports whether the stream's next input is needed: others wait for it, or the stream lags behind because
// they did not wait. It is valid after Next has returned Nothing.
func (s *Stream) Awaited() bool {
	return !s.ended && s.IsEmpty() && (s.awaited || s.late != nil)
}

// Position returns the position after the returned events of the stream.
func (s *Stream) Position() Position {
	at := Position{
		Known: s.finished.numbered, After: s.finished.numbered, Next: s.finished.sequence + 1, Discarded: s.finished.discarded,
		End: s.finished.end, First: s.first,
	}
	if sequence, numbered := s.currentSequence(); numbered {
		at.Known, at.Next, at.Events = true, sequence, s.read
		if s.head == headEvent && !(s.merger.used && s.merger.last == s) && s.read > 0 {
			at.Events-- // Next has not returned it yet
		}
	}
	if s.packet == nil && s.resume != nil && s.resume.Known {
		// The packet at the resumed position has not arrived yet.
		at.Known, at.Next, at.Events = true, s.resume.Next, s.resume.Events
	}
	return at
}

// Continues reports whether a Merger that resumes at Position returns each event once: the position is known, or no
// event was returned.
func (s *Stream) Continues() bool {
	return s.Position().Known || !s.finished.any && s.read == 0
}

// currentSequence returns the sequence number or the place of the open packet.
func (s *Stream) currentSequence() (uint64, bool) {
	if s.packet == nil {
		return 0, false
	}
	return sequenceOf(&s.reader.Packet, s.index)
}

// Resume continues the stream at a position of another Merger: it skips packets and events before it. Call it before
// the first packet.
func (s *Stream) Resume(at Position) {
	if !at.Known {
		return
	}
	s.resume, s.first = &at, at.First
	if at.After {
		s.reader.Continue(ctf.Past{Sequence: at.Next - 1, Discarded: at.Discarded, End: at.End})
		s.finished = finishedPacket{any: true, numbered: true, sequence: at.Next - 1, discarded: at.Discarded, end: at.End}
	}
}

// Current returns the packet of the stream's last event. Its values are valid until the next call of Next.
func (s *Stream) Current() *ctf.Packet { return &s.reader.Packet }

// time returns the time of a value of the stream's clock.
func (s *Stream) time(cycles uint64) int64 { return s.clock.UnixNano(cycles) }

// timed reports whether the packet has a field of that role, and the stream has a clock.
func (s *Stream) timed(role metadata.Role) bool {
	return s.clock != nil && s.reader.Packet.Has(role)
}

// idle sets the key of a stream without input. Other streams do not wait for a stream without clock.
func (s *Stream) idle() {
	s.head, s.key = headNone, s.promise
	if s.known && s.clock == nil {
		s.key = math.MaxInt64
	}
}
