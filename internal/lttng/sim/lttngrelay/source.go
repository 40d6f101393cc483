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

// Source is sessions to serve.
type Source struct {
	Recordings []*lttnglive.Recording
	// Packets, Bytes of their content, Events and Streams of packets are how much there
	// is in all of them.
	Packets, Bytes, Events uint64
	Streams                int

	// events are those in each packet, by stream and offset.
	events map[packetID]uint64
	files  []io.Closer
}

// packetID tells a packet from all others of a source.
type packetID struct{ stream, offset uint64 }

// Open makes a source of a capture of the protocol, which is a zip file, or of a
// folder with CTF traces in it.
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

// Name renames the session, unless a name is empty. It fails if there are several.
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

// Close closes the files of a folder.
func (s *Source) Close() error {
	var all error
	for _, f := range s.files {
		all = errors.Join(all, f.Close())
	}
	return all
}

// add counts a packet.
func (s *Source) add(stream uint64, index lttnglive.Index, events uint64) {
	if s.events == nil {
		s.events = map[packetID]uint64{}
	}
	s.events[packetID{stream, index.Offset}] = events
	s.Packets++
	s.Bytes += index.ContentLength()
	s.Events += events
}

// count reads the packet that a reader has begun, and returns how many events are in
// it.
func count(r *ctf.Reader) (events uint64, err error) {
	for r.Next() {
		events++
	}
	return events, r.Err()
}
