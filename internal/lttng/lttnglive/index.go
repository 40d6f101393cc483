// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive

import (
	"encoding/binary"
	"fmt"
)

// Index is the reply to "get next index": a readable packet, or the reason for none. Times are in cycles of the
// trace's clock.
type Index struct {
	Offset         uint64 // of the packet, in bytes: for "get packet"
	PacketSize     uint64 // bits
	ContentSize    uint64 // bits, including header and context. The rest of the packet is padding
	TimestampBegin uint64
	// TimestampEnd is the time of the packet's end. With IndexInactive it is a promise: the stream will have no older
	// event.
	TimestampEnd    uint64
	EventsDiscarded uint64 // since the stream began
	StreamClass     uint64 // the ID of the stream's class in the metadata
	Status          IndexStatus
	Flags           Flags
}

// indexSize is the size of the reply in bytes.
const indexSize = 64

// PacketLength returns the size of the whole packet in bytes.
func (i Index) PacketLength() uint64 { return i.PacketSize / 8 }

// ContentLength returns the number of bytes with content. A request for only these omits the padding, which is most
// of a packet that was closed by a timer.
func (i Index) ContentLength() uint64 { return i.ContentSize/8 + (i.ContentSize%8+7)/8 }

// AppendTo appends the bytes of the reply.
func (i Index) AppendTo(b []byte, _ uint32) []byte {
	for _, v := range [...]uint64{i.Offset, i.PacketSize, i.ContentSize, i.TimestampBegin, i.TimestampEnd, i.EventsDiscarded, i.StreamClass} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(i.Status))
	return binary.BigEndian.AppendUint32(b, uint32(i.Flags))
}

func readIndex(from replySource, limits Limits) (Index, error) {
	start := from.offset()
	b, err := from.next(indexSize)
	if err != nil {
		return Index{}, err
	}
	i := Index{
		Offset:          binary.BigEndian.Uint64(b),
		PacketSize:      binary.BigEndian.Uint64(b[8:]),
		ContentSize:     binary.BigEndian.Uint64(b[16:]),
		TimestampBegin:  binary.BigEndian.Uint64(b[24:]),
		TimestampEnd:    binary.BigEndian.Uint64(b[32:]),
		EventsDiscarded: binary.BigEndian.Uint64(b[40:]),
		StreamClass:     binary.BigEndian.Uint64(b[48:]),
		Status:          IndexStatus(binary.BigEndian.Uint32(b[56:])),
		Flags:           Flags(binary.BigEndian.Uint32(b[60:])),
	}
	if err := checkStatus(uint32(i.Status), indexStatuses, start+56, CommandGetNextIndex); err != nil {
		return Index{}, err
	}
	if i.Status == IndexOK {
		if err := i.checkPacket(start, limits); err != nil {
			return Index{}, err
		}
	}
	return i, nil
}

// checkPacket checks the sizes of a packet whose index is at start.
func (i Index) checkPacket(start int, limits Limits) error {
	switch {
	case i.PacketSize == 0 || i.PacketSize%8 != 0:
		return &ProtocolError{Offset: start + 8, Expected: "a packet of whole bytes", Got: fmt.Sprintf("%d bits", i.PacketSize)}
	case i.PacketLength() > uint64(limits.Packet):
		return &ProtocolError{Offset: start + 8, Expected: fmt.Sprintf("a packet of at most %d bytes", limits.Packet), Got: fmt.Sprint(i.PacketLength())}
	case i.ContentSize > i.PacketSize:
		return &ProtocolError{Offset: start + 16, Expected: fmt.Sprintf("content within its packet of %d bits", i.PacketSize), Got: fmt.Sprintf("%d bits", i.ContentSize)}
	case i.Offset+i.PacketLength() < i.Offset:
		return &ProtocolError{Offset: start, Expected: "a packet that ends below 2^64", Got: fmt.Sprintf("offset %d", i.Offset)}
	}
	return nil
}
