// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive

import (
	"sort"
	"time"
)

// reading is what one viewer has read of a session. It belongs to the viewer's
// connection.
type reading struct {
	session *relaySession
	streams []*streamReading // those that were told
	told    int              // of the recording's streams, from the first
}

// streamReading is what one viewer has read of a stream.
type streamReading struct {
	recorded *RecordedStream
	next     int // step, or piece of metadata
	packet   Index
	saidNone bool // that there is no new metadata
	gone     bool
}

// open makes the streams known that a viewer is to be told at a time of the
// recording, and gives them.
func (r *reading) open(now time.Duration, seek Seek) []Stream {
	recorded := r.session.recording.Streams
	var streams []Stream
	for ; r.told < len(recorded) && recorded[r.told].At <= now; r.told++ {
		s := &streamReading{recorded: &recorded[r.told]}
		if seek == SeekLast {
			s.skip(now)
		}
		r.streams = append(r.streams, s)
		streams = append(streams, s.recorded.Stream)
	}
	return streams
}

// hasNew says that there are streams at the time that the viewer was not told of.
func (r *reading) hasNew(now time.Duration) bool {
	recorded := r.session.recording.Streams
	return r.told < len(recorded) && recorded[r.told].At <= now
}

// over says that the session is closed at the time and the viewer has read all
// streams of packets.
func (r *reading) over(now time.Duration) bool {
	if now < r.session.recording.End || r.hasNew(now) {
		return false
	}
	for _, s := range r.streams {
		if !s.gone && !s.recorded.Metadata {
			return false
		}
	}
	return true
}

// flags are those beside an index of a stream of the trace.
func (r *reading) flags(now time.Duration, trace uint64) Flags {
	var flags Flags
	if r.hasNew(now) {
		flags |= FlagNewStreams
	}
	for _, s := range r.streams {
		if s.recorded.Metadata && s.recorded.TraceID == trace && s.hasNewMetadata(now) {
			flags |= FlagNewMetadata
		}
	}
	return flags
}

// closed says that nothing is added to a stream at the time.
func (r *reading) closed(s *streamReading, now time.Duration) bool {
	return now >= min(s.recorded.End, r.session.recording.End)
}

// skip goes behind all packets that have come at the time. A promise behind them
// still holds.
func (s *streamReading) skip(now time.Duration) {
	if s.recorded.Metadata {
		return
	}
	for i := s.come(now); i > 0; i-- {
		if s.recorded.Steps[i-1].Index.Status == IndexOK {
			s.next = i
			return
		}
	}
}

// come is how many steps have come at the time.
func (s *streamReading) come(now time.Duration) int {
	return sort.Search(len(s.recorded.Steps), func(i int) bool { return s.recorded.Steps[i].At > now })
}

// index gives what comes next in a stream of packets.
func (s *streamReading) index(now time.Duration, closed bool) Index {
	come := s.come(now)
	for i := s.next; i < come; i++ {
		if index := s.recorded.Steps[i].Index; index.Status == IndexOK {
			s.next, s.packet = i+1, index
			return index
		}
	}
	switch {
	case closed:
		s.gone = true
		return Index{Status: IndexHangUp}
	case s.next < come:
		// All that came is promises, and the last one holds until something new comes.
		s.next = come - 1
		return s.recorded.Steps[s.next].Index
	default:
		return Index{Status: IndexRetry}
	}
}

// hasNewMetadata is also true before any metadata has come, as relay daemons say it.
func (s *streamReading) hasNewMetadata(now time.Duration) bool {
	pieces := s.recorded.Pieces
	if len(pieces) == 0 || pieces[0].At > now {
		return true
	}
	return s.next < len(pieces) && pieces[s.next].At <= now
}

// metadata gives the pieces that have come and were not given yet. When a stream is
// closed and the viewer hears not for the first time that there is nothing new, the
// stream is gone after it; but not one that never had any.
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
	s.gone = closed && s.next > 0 && s.saidNone
	s.saidNone = true
	return MetadataReply{Status: MetadataNone}
}
