// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	// blockBytes is how much of a file is read at a time, in search of a line end.
	blockBytes = 64 << 10
	// startBytes is how much of a file's beginning is looked at.
	startBytes = 32
)

// repair cuts a file of a size behind its last whole record. A file of one torn record becomes empty.
func (f *File) repair(h handle, size int64) error {
	if err := f.recognize(h, size); err != nil {
		return err
	}
	end, err := f.settings.LastEnd(h, size)
	if err != nil {
		return err
	}
	if end < size {
		if err := h.Truncate(end); err != nil {
			return fmt.Errorf("cut a torn record off %s at byte %d: %w", f.settings.Path, end, err)
		}
		f.observer.Repaired(end, size-end)
	}
	f.end, f.torn = end, false
	return nil
}

// recognize is an error where a file does not begin as one of the records does.
func (f *File) recognize(h handle, size int64) error {
	start := make([]byte, min(size, startBytes))
	if _, err := h.ReadAt(start, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for _, known := range f.settings.Starts {
		n := min(len(known), len(start))
		if string(start[:n]) == known[:n] {
			return nil
		}
	}
	return fmt.Errorf("%s belongs to another program: expected a file that begins with %s, got %q: set path to another file, or move this one away",
		f.settings.Path, strings.Join(f.settings.Starts, " or "), start)
}

// LastLineEnd is the LastEnd of records that are lines. It reads backwards, and no more than the
// torn line and one block.
func LastLineEnd(r io.ReaderAt, size int64) (int64, error) {
	block := make([]byte, min(size, blockBytes))
	for end := size; end > 0; {
		part := block[:min(end, blockBytes)]
		start := end - int64(len(part))
		if _, err := r.ReadAt(part, start); err != nil {
			return 0, err
		}
		if at := bytes.LastIndexByte(part, '\n'); at >= 0 {
			return start + int64(at) + 1, nil
		}
		end = start
	}
	return 0, nil
}

// packetField is the first byte of a record for LastPacketEnd: field 1 of a protobuf message, with a length.
const packetField = 1<<3 | byte(protowire.BytesType)

// LastPacketEnd is the LastEnd of records that are fields of one protobuf message, all of them field 1, as the packets of
// Perfetto's trace files. It reads the lengths of all packets, and nothing else.
func LastPacketEnd(r io.ReaderAt, size int64) (int64, error) {
	head := make([]byte, 1+10) // a tag, and the longest varint
	for offset := int64(0); ; {
		n, err := r.ReadAt(head[:min(int64(len(head)), size-offset)], offset)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, fmt.Errorf("read a packet's length at byte %d: %w", offset, err)
		}
		if n == 0 || head[0] != packetField {
			return offset, nil
		}
		length, bytes := protowire.ConsumeVarint(head[1:n])
		if bytes < 0 || length > uint64(size-offset)-uint64(1+bytes) {
			return offset, nil
		}
		offset += int64(1+bytes) + int64(length)
	}
}
