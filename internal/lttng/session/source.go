// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
)

// source is a trace as announced on a connection. Its metadata identifies it.
type source struct {
	id          uint64
	path        string
	metadata    uint64
	hasMetadata bool
	// received is the number of bytes of metadata that arrived, and digest their hash. data has those
	// that arrived before the trace was known.
	received int
	digest   hash.Hash
	data     []byte
	// read is the metadata as far as it was read, and readTo the number of bytes in it.
	read   *ctf.Trace
	readTo int
	trace  *trace
	// waiting are streams that were announced before the trace was known.
	waiting []lttnglive.Stream
}

func newSource(announced lttnglive.Stream) *source {
	return &source{id: announced.TraceID, path: announced.Path, digest: sha256.New()}
}

// cost returns the memory that is necessary to append metadata. Metadata of a known trace is read immediately. The
// session is charged before, because many sessions may read at the same time, and reading cannot be stopped.
func (src *source) cost(data []byte) int {
	if src.trace == nil {
		return 2 * len(data)
	}
	return src.trace.ctf.CostOfReading(data)
}

// costOfReading returns the memory that is necessary to read the metadata that was not read yet.
func (src *source) costOfReading() int {
	read := src.read
	if read == nil {
		read = ctf.NewTrace()
	}
	return read.CostOfReading(src.data[min(src.readTo, len(src.data)):])
}

// append appends metadata. If another source of the trace had the same part before, both must be equal;
// otherwise they are different traces.
func (src *source) append(data []byte) error {
	src.received += len(data)
	t := src.trace
	if t == nil {
		src.digest.Write(data)
		src.data = append(src.data, data...)
		return nil
	}
	known := min(len(data), max(0, t.metadata-(src.received-len(data))))
	src.digest.Write(data[:known])
	if known > 0 && src.received-len(data)+known == t.metadata && !bytes.Equal(src.digest.Sum(nil), t.digest.Sum(nil)) {
		return fmt.Errorf("expected the same first %d bytes as in another trace with the UUID %s, got other bytes", t.metadata, t.key)
	}
	if known == len(data) {
		return nil
	}
	src.digest.Write(data[known:])
	return t.appendMetadata(data[known:])
}

// readNew reads the metadata that was not read yet, and reports whether it declares the trace.
// Metadata may arrive byte by byte; each byte is read once.
func (src *source) readNew() (declared bool, err error) {
	if src.read == nil {
		src.read = ctf.NewTrace()
	}
	more := src.data[src.readTo:]
	src.readTo = len(src.data)
	if err := src.read.Append(more); err != nil {
		return false, err
	}
	return src.read.Metadata().Declared, nil
}

// join assigns the source to a trace that has another source on this connection.
func (src *source) join(t *trace) error {
	data := src.data
	src.trace, src.data, src.received = t, nil, 0
	src.digest.Reset()
	return src.append(data)
}

// isOf assigns the source to a trace, which has read its metadata.
func (src *source) isOf(t *trace) { src.trace, src.data, src.read = t, nil, nil }

// metadataSize returns the size in memory of metadata with an unknown trace.
func (src *source) metadataSize() int {
	if src.read == nil {
		return 0
	}
	return src.read.Size()
}

// size returns the approximate size of the source in memory.
func (src *source) size() int {
	bytes := streamBytes + len(src.path) + cap(src.data) + src.metadataSize()
	for i := range src.waiting {
		bytes += streamBytes + len(src.waiting[i].Path) + len(src.waiting[i].Channel)
	}
	return bytes
}
