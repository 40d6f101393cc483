// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngrelay

import (
	"fmt"
	"time"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/lttng/sim/capture"
)

// FromCapture returns a source from a capture of the protocol: the sessions that its viewer had attached, with their
// data and times. A session that the viewer detached early ends at that time.
func FromCapture(path string) (*Source, error) {
	c, err := capture.Open(path)
	if err != nil {
		return nil, err
	}
	recordings, err := c.Recordings()
	if err != nil {
		return nil, fmt.Errorf("capture %s: %w", path, err)
	}
	s := &Source{Recordings: recordings}
	for _, r := range recordings {
		if r.End == lttnglive.Never {
			r.End = lastTime(r) + r.Session.LiveTimer
		}
		if err := s.addRecording(r); err != nil {
			return nil, fmt.Errorf("capture %s: session %d: %w", path, r.Session.ID, err)
		}
	}
	if s.Packets == 0 {
		return nil, fmt.Errorf("capture %s: expected a viewer that reads packets, got none", path)
	}
	return s, nil
}

// lastTime returns the time of the last stream, piece or step of a recording.
func lastTime(r *lttnglive.Recording) time.Duration {
	last := time.Duration(0)
	for i := range r.Streams {
		s := &r.Streams[i]
		last = max(last, s.At)
		if n := len(s.Pieces); n > 0 {
			last = max(last, s.Pieces[n-1].At)
		}
		if n := len(s.Steps); n > 0 {
			last = max(last, s.Steps[n-1].At)
		}
	}
	return last
}

// addRecording counts the packets of a recording.
func (s *Source) addRecording(r *lttnglive.Recording) error {
	traces := map[uint64]*ctf.Trace{}
	for _, stream := range r.Streams {
		if !stream.Metadata {
			continue
		}
		trace := ctf.NewTrace()
		traces[stream.TraceID] = trace
		for _, piece := range stream.Pieces {
			if err := trace.Append(piece.Data); err != nil {
				return fmt.Errorf("stream %d: metadata: %w", stream.ID, err)
			}
		}
	}
	for _, stream := range r.Streams {
		if stream.Metadata {
			continue
		}
		trace := traces[stream.TraceID]
		if trace == nil {
			return fmt.Errorf("stream %d: expected a stream of metadata of trace %d, got none", stream.ID, stream.TraceID)
		}
		if err := s.addStream(stream, ctf.NewReader(trace)); err != nil {
			return fmt.Errorf("stream %d: %w", stream.ID, err)
		}
	}
	return nil
}

// addStream counts the packets of a stream.
func (s *Source) addStream(stream lttnglive.RecordedStream, r *ctf.Reader) error {
	s.Streams++
	for _, step := range stream.Steps {
		index := step.Index
		if index.Status != lttnglive.IndexOK {
			continue
		}
		packet := make([]byte, index.ContentLength())
		n, err := stream.Packets.ReadAt(packet, int64(index.Offset))
		if n < len(packet) {
			return fmt.Errorf("packet at %d: %w", index.Offset, err)
		}
		if err := r.Begin(packet); err != nil {
			return fmt.Errorf("packet at %d: %w", index.Offset, err)
		}
		events, err := count(r)
		if err != nil {
			return fmt.Errorf("packet at %d: %w", index.Offset, err)
		}
		s.countPacket(stream.ID, index, events)
	}
	return nil
}
