// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
)

// The note with a build ID (System V ABI, "Note Section"; GNU).
const (
	noteHeaderSize = 12 // sizes of name and description, type
	noteOwner      = "GNU\x00"
	noteBuildID    = 3 // NT_GNU_BUILD_ID
)

const (
	// maxNoteBytes is the maximum size of a segment or section of notes.
	maxNoteBytes = 64 << 10
	// maxBuildIDBytes is the maximum length of a build ID. Those of linkers have 8 to 32 bytes.
	maxBuildIDBytes = 64
)

// buildID returns the build ID of a file, or "" if it has none. It is in a segment of notes. Files with separate
// debug information have lost their segments' contents, but still have the section. The error is the first one in
// reading notes, if no other notes have a build ID.
func buildID(file *elf.File) (string, error) {
	var firstErr error
	look := func(r io.ReaderAt, offset, size, align uint64) string {
		data, err := notes(r, size)
		if err != nil && firstErr == nil {
			firstErr = fmt.Errorf("notes at byte %d: %w", offset, err)
		}
		return buildIDNote(file.ByteOrder, data, align)
	}
	for _, p := range file.Progs {
		if p.Type == elf.PT_NOTE {
			if id := look(p, p.Off, p.Filesz, p.Align); id != "" {
				return id, nil
			}
		}
	}
	for _, s := range file.Sections {
		if s.Type == elf.SHT_NOTE && s.Flags&elf.SHF_COMPRESSED == 0 {
			if id := look(s, s.Offset, s.FileSize, s.Addralign); id != "" {
				return id, nil
			}
		}
	}
	return "", firstErr
}

// notes reads a segment or section of notes.
func notes(r io.ReaderAt, size uint64) ([]byte, error) {
	if size > maxNoteBytes {
		return nil, fmt.Errorf("expected at most %d bytes, got %d", maxNoteBytes, size)
	}
	data := make([]byte, size)
	if n, err := r.ReadAt(data, 0); n < len(data) {
		return nil, fmt.Errorf("expected %d bytes, got %d: %w", size, n, err)
	}
	return data, nil
}

// buildIDNote returns the build ID in a sequence of notes, or "". Descriptions have the alignment of the segment, 4
// or 8 bytes, names that of 4 bytes.
func buildIDNote(order binary.ByteOrder, data []byte, align uint64) string {
	if align != 8 {
		align = 4
	}
	for len(data) >= noteHeaderSize {
		nameSize, size, typ := uint64(order.Uint32(data)), uint64(order.Uint32(data[4:])), order.Uint32(data[8:])
		data = data[noteHeaderSize:]
		// With an alignment of 8, name and description are aligned together with the header.
		begin := roundUp(noteHeaderSize+nameSize, align) - noteHeaderSize
		if begin > uint64(len(data)) || size > uint64(len(data))-begin {
			return ""
		}
		if typ == noteBuildID && string(data[:nameSize]) == noteOwner && 0 < size && size <= maxBuildIDBytes {
			return string(data[begin : begin+size])
		}
		data = data[min(roundUp(begin+noteHeaderSize+size, align)-noteHeaderSize, uint64(len(data))):]
	}
	return ""
}

// roundUp returns the smallest multiple of to, a power of two, that is at least n.
func roundUp(n, to uint64) uint64 { return (n + to - 1) &^ (to - 1) }
