// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive

import (
	"sort"
	"time"
)

// reading is the progress of one viewer in a session. It belongs to the viewer's connection.
type reading struct {
	session *relaySession
	streams []*streamReading // streams sent to the viewer
	sent    int              // number of the recording's streams that were sent
}

// streamReading is the progress of one viewer in a stream.
type streamReading struct {
	recorded *RecordedStream
	next     int // next step, or piece of metadata
	packet   Index
	sentNone bool // MetadataNone was sent
	gone     bool
}

// newStreams adds the streams that exist at a time of the recording and were not sent yet, and returns them.
func (r *reading) newStreams(now time.Duration, seek Seek) []Stream {
	recorded := r.session.recording.Streams
	var streams []Stream
	for ; r.sent < len(recorded) && recorded[r.sent].At <= now; r.sent++ {
		s := &streamReading{recorded: &recorded[r.sent]}
		if seek == SeekLast {
			s.skip(now)
		}
		r.streams = append(r.streams, s)
		streams = append(streams, s.recorded.Stream)
	}
	return streams
}

// hasNewStreams reports whether there are streams at the time that were not sent yet.
func (r *reading) hasNewStreams(now time.Duration) bool {
	recorded := r.session.recording.Streams
	return r.sent < len(recorded) && recorded[r.sent].At <= now
}

// over reports whether the session is closed at the time and the viewer has read all streams of packets.
func (r *reading) over(now time.Duration) bool {
	if now < r.session.recording.End || r.hasNewStreams(now) {
		return false
	}
	for _, s := range r.streams {
		if !s.gone && !s.recorded.Metadata {
			return false
		}
	}
	return true
}

// flags returns the flags in an index of a stream of the trace.
func (r *reading) flags(now time.Duration, trace uint64) Flags {
	var flags Flags
	if r.hasNewStreams(now) {
		flags |= FlagNewStreams
	}
	for _, s := range r.streams {
		if s.recorded.Metadata && s.recorded.TraceID == trace && s.hasNewMetadata(now) {
			flags |= FlagNewMetadata
		}
	}
	return flags
}

// closed reports whether the stream has ended at the time.
func (r *reading) closed(s *streamReading, now time.Duration) bool {
	return now >= min(s.recorded.End, r.session.recording.End)
}

// skip moves behind all packets that exist at the time. A promise after the last packet stays.
func (s *streamReading) skip(now time.Duration) {
	if s.recorded.Metadata {
		return
	}
	for i := s.available(now); i > 0; i-- {
		if s.recorded.Steps[i-1].Index.Status == IndexOK {
			s.next = i
			return
		}
	}
}

// available returns the number of steps that exist at the time.
func (s *streamReading) available(now time.Duration) int {
	return sort.Search(len(s.recorded.Steps), func(i int) bool { return s.recorded.Steps[i].At > now })
}

// index returns the next index of a stream of packets.
func (s *streamReading) index(now time.Duration, closed bool) Index {
	available := s.available(now)
	for i := s.next; i < available; i++ {
		if index := s.recorded.Steps[i].Index; index.Status == IndexOK {
			s.next, s.packet = i+1, index
			return index
		}
	}
	switch {
	case closed:
		s.gone = true
		return Index{Status: IndexHangUp}
	case s.next < available:
		// All remaining steps are promises. The last one is valid until the next step.
		s.next = available - 1
		return s.recorded.Steps[s.next].Index
	default:
		return Index{Status: IndexRetry}
	}
}

// hasNewMetadata also returns true before there is any metadata, as relay daemons do.
func (s *streamReading) hasNewMetadata(now time.Duration) bool {
	pieces := s.recorded.Pieces
	if len(pieces) == 0 || pieces[0].At > now {
		return true
	}
	return s.next < len(pieces) && pieces[s.next].At <= now
}

// metadata returns the pieces that exist and were not sent yet. A closed stream is gone after a reply without new
// metadata, unless it is the first such reply. A stream that never had metadata stays.
func (s *streamReading) metadata(now time.Duration, closed bool) MetadataReply {
	pieces := s.recorded.Pieces
	var data []byte
	first := s.next
	for ; s.next < len(pieces) && pieces[s.next].At <= now; s.next++ {
		data = append(data, pieces[s.next].Data...)
	}
	if s.next > first {
		return MetadataReply{Status: MetadataOK, Data: data}
	}
	s.gone = closed && s.next > 0 && s.sentNone
	s.sentNone = true
	return MetadataReply{Status: MetadataNone}
}
