// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// Recording is a session as a Relay serves it: everything that its relay daemon
// knew, and when. A capture (package capture) and a folder of CTF files can both be
// told as one.
//
// Times are since the moment a first viewer attached. What stands at 0 is there when
// it attaches, and the viewer says from where it wants to read it; what comes later is
// always read from its beginning. Never is later than any time.
type Recording struct {
	// Session is told with the numbers of clients and streams that the Relay knows.
	Session Session
	// Streams in the order in which they are told.
	Streams []RecordedStream
	// End is when the session is closed. Streams that have not ended by then do.
	End time.Duration
}

// RecordedStream is one stream of a Recording.
type RecordedStream struct {
	Stream
	At  time.Duration // when the relay daemon knows of it
	End time.Duration // when it is closed: no earlier than its last step or piece
	// Pieces are those of a stream of metadata, in order of time.
	Pieces []MetadataPiece
	// Steps are those of a stream of packets, in order of time.
	Steps []Step
	// Packets has the bytes of the packets, at the offsets that their indexes say.
	Packets io.ReaderAt
}

// MetadataPiece is metadata that comes at once.
type MetadataPiece struct {
	At   time.Duration
	Data []byte
}

// Step is something new in a stream: a packet, or a promise that nothing older than
// its TimestampEnd will come. A promise holds until the next step.
type Step struct {
	At    time.Duration
	Index Index // IndexOK or IndexInactive; the flags are the Relay's
}

// Never is the time of what doesn't happen.
const Never time.Duration = math.MaxInt64

// check says what is wrong with a recording.
func (r *Recording) check() error {
	s := r.Session
	if err := errors.Join(
		checkText(s.Host, sessionHostField, "the name of the host"),
		checkText(s.Name, sessionNameField, "the name of the session"),
	); err != nil {
		return err
	}
	if s.LiveTimer < 0 || s.LiveTimer > math.MaxUint32*time.Microsecond {
		return fmt.Errorf("expected a live timer from 0 to %v, got %v", math.MaxUint32*time.Microsecond, s.LiveTimer)
	}
	if err := checkOrder(r.Streams, func(s RecordedStream) time.Duration { return s.At }, Never, "stream"); err != nil {
		return err
	}
	for i := range r.Streams {
		if err := r.Streams[i].check(); err != nil {
			return fmt.Errorf("stream %d: %w", r.Streams[i].ID, err)
		}
	}
	return nil
}

func (s *RecordedStream) check() error {
	if err := errors.Join(
		checkText(s.Path, streamPathField, "the path"),
		checkText(s.Channel, streamChannelField, "the channel"),
	); err != nil {
		return err
	}
	if s.Metadata {
		return s.checkMetadata()
	}
	return s.checkPackets()
}

func (s *RecordedStream) checkMetadata() error {
	if len(s.Steps) > 0 {
		return fmt.Errorf("expected no steps in a stream of metadata, got %d", len(s.Steps))
	}
	return checkOrder(s.Pieces, func(p MetadataPiece) time.Duration { return p.At }, s.End, "piece")
}

func (s *RecordedStream) checkPackets() error {
	if len(s.Pieces) > 0 {
		return fmt.Errorf("expected no metadata in a stream of packets, got %d pieces", len(s.Pieces))
	}
	for i, step := range s.Steps {
		switch step.Index.Status {
		case IndexOK:
			if err := step.Index.checkPacket(0, Limits{Packet: math.MaxInt32}); err != nil {
				return fmt.Errorf("step %d: %w", i, err)
			}
			if s.Packets == nil {
				return fmt.Errorf("step %d: expected where to read the packet, got nothing", i)
			}
		case IndexInactive:
		default:
			return fmt.Errorf("step %d: expected status %s or %s, got %s", i, IndexOK, IndexInactive, step.Index.Status)
		}
	}
	return checkOrder(s.Steps, func(p Step) time.Duration { return p.At }, s.End, "step")
}

// checkOrder says what stands before what it should come after, or behind the end.
func checkOrder[E any](all []E, at func(E) time.Duration, end time.Duration, what string) error {
	for i := range all {
		if i > 0 && at(all[i]) < at(all[i-1]) {
			return fmt.Errorf("expected %s %d no earlier than the one before, at %v; got %v", what, i, at(all[i-1]), at(all[i]))
		}
	}
	if n := len(all); n > 0 && at(all[n-1]) > end {
		return fmt.Errorf("expected every %s before the end at %v, got one at %v", what, end, at(all[n-1]))
	}
	return nil
}

// checkText says that text cannot stand in a field of size bytes.
func checkText(text string, size int, what string) error {
	if len(text) >= size || strings.ContainsRune(text, 0) {
		return fmt.Errorf("expected %s of at most %d bytes without NUL, got %q", what, size-1, text)
	}
	return nil
}
