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
	// ID and Name are what AddStream was given.
	ID   uint64
	Name string

	merger *Merger
	number int

	queue queue
	// ended says that nothing more comes, over that all that came was given out.
	ended, over bool
	// promise is what nothing that comes up is older than.
	promise int64
	// unresolved says that the input in front can't be understood yet.
	unresolved bool

	// head is what is given out next, and key its time; without a head key is the
	// promise.
	head     head
	key      int64
	headLoss *Loss

	// reader has begun packet, if that isn't nil, and read so many events of it.
	reader *ctf.Reader
	packet []byte
	read   uint64
	clock  *ctf.Clock // of the stream's class
	known  bool       // the class
	// marks are the ends of losses that stand between the events of the packet.
	marks []mark
	// open is a loss that the next packet or promise ends.
	open *Loss
	// stopped says that tracing was stopped at promise, if anything follows.
	stopped bool

	// late is open while the stream lags behind the others, which don't wait for it.
	late *Loss
	// awaited says that others wait for the stream's next word since a time.
	awaited bool
	since   time.Duration

	// peek reads packets before reader does.
	peek    *ctf.Reader
	largest uint64 // event in a packet with losses, in bits
	whole   whole
	resume  *Position
}

func (s *Stream) behind() bool { return s.late != nil }

// Packet gives the stream its next packet: all of it but the padding behind its
// content. The bytes are the Merger's until PacketEnd. The index may be nil; where
// there is one the packet must not contradict it.
func (s *Stream) Packet(packet []byte, index *Index) {
	if s.ended {
		return
	}
	s.merger.waiting += len(packet)
	if index != nil {
		copied := *index
		index = &copied
	}
	s.tell(input{kind: inputPacket, packet: packet, index: index})
}

// Promise says that whatever comes of the stream from now on is no older than a value
// of the clock of a stream class. The class may be one that the metadata doesn't have
// yet.
func (s *Stream) Promise(class, cycles uint64) {
	in := input{kind: inputPromise, class: class, cycles: cycles}
	if !s.queue.empty() && s.queue.back().kind == inputPromise {
		*s.queue.back() = in
		s.wake()
		return
	}
	s.tell(in)
}

// Lose says that something may be missing between what the stream was told before and
// what it is told next.
func (s *Stream) Lose(cause Cause) { s.tell(input{kind: inputLose, cause: cause}) }

// End says that nothing more comes of the stream. What it is told afterwards, but Again,
// is passed over, and packets stay the caller's.
func (s *Stream) End() {
	s.ended = true
	s.wake()
}

func (s *Stream) tell(in input) {
	if s.ended {
		return
	}
	s.queue.push(in)
	s.wake()
}

// wake lets the stream go on if it had nothing.
func (s *Stream) wake() {
	if s.head != headNone || s.merger.err != nil {
		return
	}
	s.merger.stopRunning()
	before := s.key
	s.step()
	if s != s.merger.last {
		s.reader.Unload()
	}
	if s.head != headNone || s.key > before {
		s.awaited = false
	}
	s.merger.settle(s)
}

// Held is about how many bytes the stream has in memory beside its packets.
func (s *Stream) Held() int {
	const stream, ofInput, ofMark = 1 << 10, 100, 100
	held := stream + len(s.Name) + ofInput*cap(s.queue.inputs) + ofMark*cap(s.marks) + s.reader.Held()
	if s.peek != nil {
		held += s.peek.Held()
	}
	return held
}

// Wanted says whether the stream should be given more: others may wait for it, or
// there is room.
func (s *Stream) Wanted() bool {
	return !s.ended && (s.IsEmpty() || s.merger.waiting < s.merger.options.MaxWaiting)
}

// IsEmpty says that nothing of the stream waits.
func (s *Stream) IsEmpty() bool { return s.head == headNone && s.queue.empty() }

// Awaited says that the stream's next word is waited for: others wait for it, or went on
// without it and it lags behind. It holds once Next has returned Nothing.
func (s *Stream) Awaited() bool {
	return !s.ended && s.IsEmpty() && (s.awaited || s.late != nil)
}

// PassBy says that nobody is to wait for what the stream has to say next: the caller has
// no room for it, or it won't come soon. If others wait for it they go on without it, as
// if MaxDelay were over: the loss is of that cause. It reports whether that is so. Next
// must have returned Nothing.
func (s *Stream) PassBy(cause Cause) bool {
	if s.merger.err != nil || s.late != nil || !s.Awaited() {
		return false
	}
	s.merger.passBy(s, cause)
	return true
}

// Current is the packet that the stream's last event is of; its values hold until the
// next call of Next.
func (s *Stream) Current() *ctf.Packet { return &s.reader.Packet }

// time is when a value of the stream's clock was.
func (s *Stream) time(cycles uint64) int64 { return s.clock.UnixNano(cycles) }

// timed says that the packet has a field of that role, and there is a clock to
// understand it.
func (s *Stream) timed(role metadata.Role) bool {
	return s.clock != nil && s.reader.Packet.Has(role)
}

// idle sets the key of a stream that has nothing. Without a clock nobody waits for it.
func (s *Stream) idle() {
	s.head, s.key = headNone, s.promise
	if s.known && s.clock == nil {
		s.key = math.MaxInt64
	}
}
