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

// Recording is a session for a Relay: all of its data, with times. Package capture makes one from a capture, others
// are made from CTF files.
//
// Times are relative to the attachment of the first viewer. Data at time 0 exists when the viewer attaches, and the
// viewer chooses from where to read it. A viewer reads later streams from their beginning. Never is later than any
// time.
type Recording struct {
	// Session describes the session. The Relay sets the numbers of clients and streams.
	Session Session
	// Streams are in order of At.
	Streams []RecordedStream
	// End is the time at which the session is closed. It also ends streams with a later end.
	End time.Duration
}

// RecordedStream is one stream of a Recording.
type RecordedStream struct {
	Stream
	At  time.Duration // when the relay daemon learns of it
	End time.Duration // when it is closed: at its last step or piece, or later
	// Pieces are the metadata of a metadata stream, in order of time.
	Pieces []MetadataPiece
	// Steps are the steps of a stream of packets, in order of time.
	Steps []Step
	// Packets has the bytes of the packets, at the offsets in their indexes.
	Packets io.ReaderAt
}

// MetadataPiece is a piece of metadata that arrives at one time.
type MetadataPiece struct {
	At   time.Duration
	Data []byte
}

// Step is a new packet in a stream, or a promise that it has no event older than TimestampEnd. A promise is valid
// until the next step.
type Step struct {
	At    time.Duration
	Index Index // IndexOK or IndexInactive. The Relay sets the flags
}

// Never is the time of an event that does not happen.
const Never time.Duration = math.MaxInt64

// check checks a recording.
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
				return fmt.Errorf("step %d: expected a reader of packets, got none", i)
			}
		case IndexInactive:
		default:
			return fmt.Errorf("step %d: expected status %s or %s, got %s", i, IndexOK, IndexInactive, step.Index.Status)
		}
	}
	return checkOrder(s.Steps, func(p Step) time.Duration { return p.At }, s.End, "step")
}

// checkOrder checks that all are in order of time, and that none is after the end.
func checkOrder[E any](all []E, at func(E) time.Duration, end time.Duration, name string) error {
	for i := range all {
		if i > 0 && at(all[i]) < at(all[i-1]) {
			return fmt.Errorf("expected %s %d at the time of the previous one, %v, or later, got %v", name, i, at(all[i-1]), at(all[i]))
		}
	}
	if n := len(all); n > 0 && at(all[n-1]) > end {
		return fmt.Errorf("expected every %s before the end at %v, got one at %v", name, end, at(all[n-1]))
	}
	return nil
}

// checkText checks that text fits in a field of size bytes.
func checkText(text string, size int, name string) error {
	if len(text) >= size || strings.ContainsRune(text, 0) {
		return fmt.Errorf("expected %s of at most %d bytes without NUL, got %q", name, size-1, text)
	}
	return nil
}
