// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"encoding/binary"
	"fmt"
)

// The flags of a frame (RFC 23, "Framing"). All other bits are reserved and 0.
const (
	flagMore    = 1 << 0 // another part of the message follows
	flagLong    = 1 << 1 // the size has 8 bytes, not 1
	flagCommand = 1 << 2 // it is a command, no part of a message
	flagsKnown  = flagMore | flagLong | flagCommand
)

// Sizes of the header of a frame, and the largest body that a short one can announce.
const (
	shortHeader = 2
	longHeader  = 9
	maxShort    = 255
)

// header is the header of a frame.
type header struct {
	flags byte
	size  uint64 // of the body
}

// headerSize returns the size of a header that begins with flags.
func headerSize(flags byte) int {
	if flags&flagLong != 0 {
		return longHeader
	}
	return shortHeader
}

// parseHeader reads a header of headerSize bytes. Errors are relative to b.
func parseHeader(b []byte) (header, *ProtocolError) {
	h := header{flags: b[0]}
	if err := checkFlags(h.flags); err != nil {
		return h, err
	}
	if h.flags&flagLong == 0 {
		h.size = uint64(b[1])
		return h, nil
	}
	h.size = binary.BigEndian.Uint64(b[1:])
	if h.size>>63 != 0 {
		return h, &ProtocolError{Offset: 1, Expected: "a size of a frame below 2^63", Got: fmt.Sprint(h.size)}
	}
	return h, nil
}

// checkFlags checks the first byte of a frame.
func checkFlags(flags byte) *ProtocolError {
	switch {
	case flags&^flagsKnown != 0:
		return &ProtocolError{Expected: "flags of a frame with reserved bits 0", Got: fmt.Sprintf("%#02x", flags)}
	case flags&flagCommand != 0 && flags&flagMore != 0:
		return &ProtocolError{Expected: "a command of one frame", Got: fmt.Sprintf("flags %#02x, of a command with more to follow", flags)}
	}
	return nil
}

// appendHeader appends the shortest header of a frame whose body has size bytes.
func appendHeader(b []byte, flags byte, size int) []byte {
	if size <= maxShort {
		return append(b, flags, byte(size))
	}
	return binary.BigEndian.AppendUint64(append(b, flags|flagLong), uint64(size))
}

// AppendMessage appends the frames of a message with these parts, at least one.
func AppendMessage(b []byte, parts ...[]byte) []byte {
	for i, part := range parts {
		var flags byte
		if i < len(parts)-1 {
			flags = flagMore
		}
		b = append(appendHeader(b, flags, len(part)), part...)
	}
	return b
}
