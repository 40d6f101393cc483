// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngrelay

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
)

// Source contains sessions to serve.
type Source struct {
	Recordings []*lttnglive.Recording
	// Packets, Bytes of their content, Events and Streams of packets are the totals of all sessions.
	Packets, Bytes, Events uint64
	Streams                int

	// events are the numbers of events by packet.
	events map[packetID]uint64
	files  []io.Closer
}

// packetID identifies a packet of a source.
type packetID struct{ stream, offset uint64 }

// Open returns a source from a capture of the protocol, which is a zip file, or from a directory with CTF traces.
func Open(path string) (*Source, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return FromDirectory(path)
	}
	return FromCapture(path)
}

// Name renames the session. Empty names have no effect. It fails if there are several sessions.
func (s *Source) Name(host, name string) error {
	if host == "" && name == "" {
		return nil
	}
	if n := len(s.Recordings); n != 1 {
		return fmt.Errorf("expected one session to rename, got %d", n)
	}
	session := &s.Recordings[0].Session
	if host != "" {
		session.Host = host
	}
	if name != "" {
		session.Name = name
	}
	return nil
}

// Close closes the files of a directory.
func (s *Source) Close() error {
	var all error
	for _, f := range s.files {
		all = errors.Join(all, f.Close())
	}
	return all
}

// countPacket counts a packet.
func (s *Source) countPacket(stream uint64, index lttnglive.Index, events uint64) {
	if s.events == nil {
		s.events = map[packetID]uint64{}
	}
	s.events[packetID{stream, index.Offset}] = events
	s.Packets++
	s.Bytes += index.ContentLength()
	s.Events += events
}

// count returns the number of events in the open packet of a reader.
func count(r *ctf.Reader) (events uint64, err error) {
	for r.Next() {
		events++
	}
	return events, r.Err()
}
