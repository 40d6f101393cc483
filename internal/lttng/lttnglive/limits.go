// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive

// Limits bound the announced sizes in replies. A larger size is a *ProtocolError. A field that is 0 has its default.
//
// The limits are no allocations: buffers grow while bytes arrive.
type Limits struct {
	Sessions int // in one list; default 4,096
	Streams  int // in one reply; default 65,536
	Packet   int // bytes of one packet; default 64 MiB
	Metadata int // bytes of metadata in one reply; default 64 MiB
}

const (
	defaultSessions = 4096
	defaultStreams  = 65536
	defaultPacket   = 64 << 20
	defaultMetadata = 64 << 20
)

func (l Limits) withDefaults() Limits {
	set := func(field *int, value int) {
		if *field <= 0 {
			*field = value
		}
	}
	set(&l.Sessions, defaultSessions)
	set(&l.Streams, defaultStreams)
	set(&l.Packet, defaultPacket)
	set(&l.Metadata, defaultMetadata)
	return l
}
