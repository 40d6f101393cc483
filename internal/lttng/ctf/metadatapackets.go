// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf

import (
	"encoding/binary"
	"fmt"
)

// The header of a metadata packet: magic u32, UUID [16]u8, checksum u32, content size
// in bits u32, packet size in bits u32, compression scheme u8, encryption scheme u8,
// checksum scheme u8, major u8, minor u8 (CTF 1.8, section 7.1).
const (
	metadataMagic      = 0x75D11D57
	metadataHeaderSize = 37
)

// unwrapper extracts the text of metadata from packets. It returns plain text unchanged.
type unwrapper struct {
	state wrapping
	order binary.ByteOrder
	// uuid is the UUID of the first packet, valid once begun is set.
	uuid  [16]byte
	begun bool
	// rest is the begin of an incomplete packet. at is its offset in the stream.
	rest []byte
	at   int
}

// wrapping is the form of the metadata: plain text or packets.
type wrapping uint8

const (
	wrappingUnknown wrapping = iota
	wrappingNone
	wrappingPackets
)

// append returns the text in b, which continues the previous bytes.
func (u *unwrapper) append(b []byte) ([]byte, error) {
	if u.state == wrappingNone {
		return b, nil
	}
	u.rest = append(u.rest, b...)
	if u.state == wrappingUnknown {
		if len(u.rest) < 4 {
			return nil, nil
		}
		switch {
		case binary.LittleEndian.Uint32(u.rest) == metadataMagic:
			u.state, u.order = wrappingPackets, binary.LittleEndian
		case binary.BigEndian.Uint32(u.rest) == metadataMagic:
			u.state, u.order = wrappingPackets, binary.BigEndian
		default:
			text := u.rest
			u.state, u.rest = wrappingNone, nil
			return text, nil
		}
	}
	return u.packets()
}

// MetadataText returns the text of metadata, which is in packets or plain. It omits an incomplete packet at the end.
func MetadataText(b []byte) ([]byte, error) {
	var u unwrapper
	return u.append(b)
}

// packets returns the text of the complete packets.
func (u *unwrapper) packets() ([]byte, error) {
	var text []byte
	done := 0
	for len(u.rest)-done >= metadataHeaderSize {
		packet := u.rest[done:]
		content, size, err := u.header(packet)
		if err != nil {
			return nil, fmt.Errorf("metadata packet at byte %d: %w", u.at+done, err)
		}
		if len(packet) < size {
			break
		}
		text = append(text, packet[metadataHeaderSize:content]...)
		done += size
	}
	u.at += done
	u.rest = append(u.rest[:0], u.rest[done:]...)
	return text, nil
}

// header checks the header of a packet. It returns the sizes of its content and of the packet in bytes, including the
// header.
func (u *unwrapper) header(b []byte) (content, size int, err error) {
	if magic := u.order.Uint32(b); magic != metadataMagic {
		return 0, 0, fmt.Errorf("expected magic %#x, got %#x", metadataMagic, magic)
	}
	uuid := [16]byte(b[4:20])
	if !u.begun {
		u.uuid, u.begun = uuid, true
	}
	if uuid != u.uuid {
		return 0, 0, fmt.Errorf("expected UUID %x, got %x", u.uuid, uuid)
	}
	contentBits, packetBits := u.order.Uint32(b[24:]), u.order.Uint32(b[28:])
	if contentBits%8 != 0 || packetBits%8 != 0 || contentBits < metadataHeaderSize*8 || packetBits < contentBits {
		return 0, 0, fmt.Errorf("expected at least %d bits of content in a packet of at least that, got %d and %d",
			metadataHeaderSize*8, contentBits, packetBits)
	}
	for i, scheme := range []string{"compression", "encryption", "checksum"} {
		if number := b[32+i]; number != 0 {
			return 0, 0, fmt.Errorf("expected no %s (0), got scheme %d, which is not supported", scheme, number)
		}
	}
	if major, minor := b[35], b[36]; (major != 1 || minor != 8) && (major != 2 || minor != 0) {
		return 0, 0, fmt.Errorf("expected CTF 1.8 or 2.0, got %d.%d", major, minor)
	}
	return int(contentBits / 8), int(packetBits / 8), nil
}
