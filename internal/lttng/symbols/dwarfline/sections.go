// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package dwarfline

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Sections are the sections of a file that places are read from. Only Line must exist.
type Sections struct {
	Line, LineStr, Str, Info, Abbrev Section
	Order                            binary.ByteOrder
	// AddressSize is the size of addresses in bytes, 4 or 8.
	AddressSize int
}

// Section is a section of a file. The zero value is a missing section.
type Section struct {
	// Open returns a reader from the section's begin to its end, after decompression.
	Open func() io.Reader
	// At reads at any place. It is nil if the section is compressed.
	At io.ReaderAt
	// Size is the size after decompression, in bytes.
	Size int64
}

// Exists reports whether the file has the section.
func (s Section) Exists() bool { return s.Open != nil }

// ErrLimit means that a file has more than Limits allow.
var ErrLimit = errors.New("too much debug information")

// budget is the number of bytes that may still be read.
type budget struct {
	left, limit int64
	// room is Limits.Reserve.
	room func(bytes int64) error
}

// growth is the ratio of the memory of a buffer that grows to its content.
const growth = 2

// reserve reserves memory. Its error is one of ErrLimit, which ends the reading.
func (b *budget) reserve(bytes int64) error {
	if b.room == nil {
		return nil
	}
	if err := b.room(bytes); err != nil {
		return fmt.Errorf("%w: %w", ErrLimit, err)
	}
	return nil
}

func (b *budget) spend(n int64) error {
	if n < 0 || n > b.left {
		return fmt.Errorf("%w: expected at most %d bytes of line tables and their texts", ErrLimit, b.limit)
	}
	b.left -= n
	return nil
}

const (
	// maxProgramBytes is the maximum size of one program, and of another section that is in memory completely.
	maxProgramBytes = 64 << 20
	// searchCost is the number of bytes that the search for an address counts as, and keptCost that for a byte of a
	// path that is kept.
	searchCost = 16
	keptCost   = 4
)

// whole reads a whole section.
func (s Section) whole(b *budget) ([]byte, error) {
	if s.Size > maxProgramBytes {
		return nil, fmt.Errorf("%w: expected a section of at most %d bytes, got %d", ErrLimit, maxProgramBytes, s.Size)
	}
	if err := b.spend(s.Size); err != nil {
		return nil, err
	}
	if err := b.reserve(growth * s.Size); err != nil {
		return nil, err
	}
	var content bytes.Buffer // grows with the content that is read
	if _, err := io.CopyN(&content, s.Open(), s.Size); err != nil {
		return nil, err
	}
	return content.Bytes(), nil
}

// units reads a section that is a sequence of units, forwards.
type units struct {
	section Section
	reader  *bufio.Reader
	at      int64
}

func newUnits(s Section, buffer int) *units {
	return &units{section: s, reader: bufio.NewReaderSize(s.Open(), buffer)}
}

// skippedPart is the part of skipped bytes that counts, if they must be decompressed.
const skippedPart = 8

// skipTo continues at a later offset.
func (u *units) skipTo(offset int64, b *budget) error {
	n := offset - u.at
	u.at = offset
	if u.section.At != nil && n > int64(u.reader.Buffered()) {
		u.reader.Reset(io.NewSectionReader(u.section.At, offset, u.section.Size-offset))
		return nil
	}
	if u.section.At == nil {
		if err := b.spend(n / skippedPart); err != nil {
			return err
		}
	}
	for n > 0 {
		skipped, err := u.reader.Discard(int(min(n, 1<<30)))
		if err != nil {
			return err
		}
		n -= int64(skipped)
	}
	return nil
}

const (
	// maxTextBytes is the maximum length of a part of a path, PATH_MAX of Linux.
	maxTextBytes = 4096
	// shortTextBytes is the length of nearly all of them.
	shortTextBytes = 512
	// textCost is the number of bytes that reading a text counts as, beside its length.
	textCost = 64
)

// texts reads texts of a section of strings (.debug_str, .debug_line_str).
type texts struct {
	section Section
	at      io.ReaderAt
	buffer  []byte
}

// text returns the text at an offset, valid until the next call, or nil if there is none within maxTextBytes.
func (t *texts) text(offset uint64, b *budget) ([]byte, error) {
	if !t.section.Exists() || offset >= uint64(t.section.Size) {
		return nil, nil
	}
	if t.at == nil {
		t.at = t.section.At
	}
	if t.at == nil {
		content, err := t.section.whole(b)
		if err != nil {
			return nil, err
		}
		t.at = bytes.NewReader(content)
	}
	if t.buffer == nil {
		t.buffer = make([]byte, maxTextBytes)
	}
	for _, size := range []int{shortTextBytes, maxTextBytes} {
		n, err := t.at.ReadAt(t.buffer[:size], int64(offset))
		if err != nil && err != io.EOF {
			return nil, err
		}
		if end := bytes.IndexByte(t.buffer[:n], 0); end >= 0 {
			return t.buffer[:end], b.spend(int64(end) + textCost)
		}
	}
	return nil, b.spend(maxTextBytes)
}
