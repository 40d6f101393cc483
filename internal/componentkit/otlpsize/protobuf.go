// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package otlpsize

import (
	"errors"
	"fmt"
)

// Size is the result of a walk.
type Size struct {
	// Bytes is the estimated memory of the decoded request, in bytes, without the request itself. It is at least 0.8
	// times and at most twice the real size.
	Bytes int
	// Depth is the number of levels of lists and maps of the deepest value. A text or a number has none, and a list of
	// texts has one. For JSON it counts levels of brackets.
	Depth int
	// Elements is the number of spans, log records, data points or samples. For JSON it is unknown.
	Elements int
}

// ErrDepth is the error of values that are nested deeper than allowed.
var ErrDepth = errors.New("more levels than allowed")

// MalformedError has the position where a request is no protobuf. The Collector cannot decode it either.
type MalformedError struct {
	// At is the offset of the field, in bytes.
	At int
}

func (e *MalformedError) Error() string {
	return fmt.Sprintf("expected a field of protobuf at byte %d, got something else", e.At)
}

// Wire types of protobuf.
const (
	wireVarint     = 0
	wireI64        = 1
	wireLen        = 2
	wireStartGroup = 3
	wireEndGroup   = 4
	wireI32        = 5
)

const (
	// structure bounds the messages around a value, with some to spare.
	structure = 16
	// framesOfLevel is the number of messages of one level of nesting: AnyValue, KeyValueList, KeyValue.
	framesOfLevel = 3
	// framesOnStack are enough for 32 levels without an allocation.
	framesOnStack = 128
	// inlineText is the number of bytes up to which Go has no memory for a text.
	inlineText = 1
	// blocks is the rounding of the memory of texts, in bytes.
	blocks = 8
)

// frame is a message that the walk is in.
type frame struct {
	end int
	in  Message
}

// Protobuf walks a request, whose values may have most levels. If the error is [ErrDepth] or a
// *[MalformedError], the size is that of the part before it. Its time is in proportion to the
// number of fields.
//
//  1. The frames are the messages around the position, the innermost last.
//  2. A field that is a message becomes the innermost frame. Other fields are skipped.
//  3. At the end of the innermost frame the walk goes on in the one around it.
func Protobuf(request Message, body []byte, most int) (size Size, err error) {
	var onStack [framesOnStack]frame
	frames := onStack[:]
	if need := structure + framesOfLevel*most; need > len(frames) {
		frames = make([]frame, need)
	}
	depth, open := 0, 0
	in, end := request, len(body)
	for pos := 0; ; {
		for pos >= end {
			if open == 0 {
				return size, nil
			}
			if in == arrayValue || in == keyValueList {
				depth--
			}
			open--
			in, end = frames[open].in, frames[open].end
		}
		at := pos
		var tag uint64
		if tag = uint64(body[pos]); tag < 0x80 {
			pos++
		} else if tag, pos = varint(body[:end], pos); pos < 0 {
			return size, &MalformedError{At: at}
		}
		// The Collector cuts numbers of fields to 32 bits as well.
		number := int32(tag >> 3)
		if number <= 0 {
			return size, &MalformedError{At: at}
		}
		var f field
		switch {
		case number <= mostFields:
			f = table[in][number]
		case number == deprecated:
			f = table[in][0]
		}
		if wire := tag & 7; wire != wireLen {
			if f.content == message || f.content == text {
				return size, &MalformedError{At: at}
			}
			if pos = skip(body[:end], pos, wire); pos < 0 {
				return size, &MalformedError{At: at}
			}
			size.Bytes += int(f.cost)
			continue
		}
		var length uint64
		if pos < end && body[pos] < 0x80 {
			length = uint64(body[pos])
			pos++
		} else if length, pos = varint(body[:end], pos); pos < 0 {
			return size, &MalformedError{At: at}
		}
		if length > uint64(end-pos) {
			return size, &MalformedError{At: at}
		}
		next := pos + int(length)
		switch f.content {
		case message:
			size.Bytes += int(f.cost)
			if f.counts {
				size.Elements++
			}
			if f.child == arrayValue || f.child == keyValueList {
				if depth++; depth > most {
					size.Depth = depth
					return size, ErrDepth
				}
				size.Depth = max(size.Depth, depth)
			}
			if open == len(frames) {
				return size, ErrDepth
			}
			frames[open] = frame{end: end, in: in}
			open++
			in, end = f.child, next
			continue
		case text:
			size.Bytes += int(f.cost)
			if length > inlineText {
				size.Bytes += int(length+blocks-1) &^ (blocks - 1)
			}
		case varints:
			for _, b := range body[pos:next] {
				if b < 0x80 {
					size.Bytes += int(f.cost)
				}
			}
		case fixed:
			size.Bytes += int(length)
		case inPlace, allocated:
		}
		pos = next
	}
}

// varint reads a number of body, and returns the position behind it, or -1 if there is none.
func varint(body []byte, pos int) (value uint64, next int) {
	for shift := uint(0); shift < 64; shift += 7 {
		if pos >= len(body) {
			return 0, -1
		}
		b := body[pos]
		pos++
		value |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return value, pos
		}
	}
	return 0, -1
}

// skip returns the position behind the content of a field, or -1 if it has no end. In a group
// it ends behind the first field, as the Collector does.
func skip(body []byte, pos int, wire uint64) int {
	for groups := 0; ; {
		switch wire {
		case wireVarint:
			_, pos = varint(body, pos)
			return pos
		case wireI64:
			return within(body, pos, 8)
		case wireI32:
			return within(body, pos, 4)
		case wireLen:
			length, next := varint(body, pos)
			if next < 0 {
				return -1
			}
			return within(body, next, length)
		case wireStartGroup:
			groups++
		case wireEndGroup:
			if groups--; groups < 0 {
				return -1
			}
		default:
			return -1
		}
		if groups == 0 {
			return pos
		}
		var tag uint64
		if tag, pos = varint(body, pos); pos < 0 || int32(tag>>3) <= 0 {
			return -1
		}
		wire = tag & 7
	}
}

// within returns the position after length bytes, or -1 if there are fewer.
func within(body []byte, pos int, length uint64) int {
	if length > uint64(len(body)-pos) {
		return -1
	}
	return pos + int(length)
}
