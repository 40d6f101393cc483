// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngrelay

import (
	"io"
	"sync"

	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
)

// served counts the packets that were sent to viewers.
type served struct {
	mu sync.Mutex
	// left are the packets that no viewer has read, with their numbers of events.
	left  map[packetID]uint64
	stats Stats
	// all is closed when left is empty.
	all chan struct{}
}

// countedPackets counts the packets of a stream that are read.
type countedPackets struct {
	io.ReaderAt
	stream uint64
	source *Source
	served *served
}

func (p *countedPackets) ReadAt(b []byte, offset int64) (int, error) {
	n, err := p.ReaderAt.ReadAt(b, offset)
	if n == len(b) {
		p.served.countPacket(packetID{p.stream, uint64(offset)}, p.source, uint64(n))
	}
	return n, err
}

func (g *served) countPacket(id packetID, source *Source, bytes uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stats.Bytes += bytes
	events, whole := source.events[id]
	if !whole {
		return // a part of a packet
	}
	g.stats.Packets++
	g.stats.Events += events
	if _, first := g.left[id]; first {
		if delete(g.left, id); len(g.left) == 0 {
			close(g.all)
		}
	}
}

// change changes the counters.
func (g *served) change(f func(*Stats)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f(&g.stats)
}

// newServed returns the counters of a source, and its recordings with packets that are counted.
func newServed(s *Source) (*served, []*lttnglive.Recording) {
	g := &served{left: map[packetID]uint64{}, all: make(chan struct{})}
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
