// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngrelay

import (
	"io"
	"sync"

	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
)

// given counts the packets that viewers were given.
type given struct {
	mu sync.Mutex
	// left are the packets that no viewer was given, with their events.
	left  map[packetID]uint64
	stats Stats
	// all is closed when nothing is left.
	all chan struct{}
}

// countedPackets counts the packets of a stream that are read.
type countedPackets struct {
	io.ReaderAt
	stream uint64
	source *Source
	given  *given
}

func (p *countedPackets) ReadAt(b []byte, offset int64) (int, error) {
	n, err := p.ReaderAt.ReadAt(b, offset)
	if n == len(b) {
		p.given.add(packetID{p.stream, uint64(offset)}, p.source, uint64(n))
	}
	return n, err
}

func (g *given) add(id packetID, source *Source, bytes uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stats.Bytes += bytes
	events, whole := source.events[id]
	if !whole {
		return // a part of one that was counted
	}
	g.stats.Packets++
	g.stats.Events += events
	if _, first := g.left[id]; first {
		if delete(g.left, id); len(g.left) == 0 {
			close(g.all)
		}
	}
}

// change changes the figures.
func (g *given) change(f func(*Stats)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f(&g.stats)
}

// newGiven has the packets of a source counted.
func newGiven(s *Source) (*given, []*lttnglive.Recording) {
	g := &given{left: map[packetID]uint64{}, all: make(chan struct{})}
	for id, events := range s.events {
		g.left[id] = events
	}
	var recordings []*lttnglive.Recording
	for _, r := range s.Recordings {
		counted := *r
		counted.Streams = make([]lttnglive.RecordedStream, len(r.Streams))
		for i, stream := range r.Streams {
			if stream.Packets != nil {
				stream.Packets = &countedPackets{stream.Packets, stream.ID, s, g}
			}
			counted.Streams[i] = stream
		}
		recordings = append(recordings, &counted)
	}
	return g, recordings
}
