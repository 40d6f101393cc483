// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"crypto/sha256"
	"encoding/binary"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// Identity has the keys for the IDs of a stream's spans and traces. An ID is a hash of the sequence
// number of an entry, keyed by the stream's ID. The same call stream has the same IDs in every
// collector. Within a stream the hash is a bijection, so two spans never share an ID.
type Identity struct {
	span, traceHigh, traceLow key
}

// key is one keyed hash: two words, added before and after mixing.
type key struct{ before, after uint64 }

func newIdentity(stream callevent.StreamID) Identity {
	word := func(label string) key {
		sum := sha256.Sum256(append([]byte("callbraid "+label+" 1 "), stream[:]...))
		return key{binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:])}
	}
	return Identity{span: word("span"), traceHigh: word("trace high"), traceLow: word("trace low")}
}

// hash mixes as the finalizer of SplitMix64 does. Every bit of the number changes half of the bits
// of the hash. So any 56 of them are uniform, which consistent sampling needs.
func (k key) hash(n uint64) uint64 {
	n += k.before
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return (n ^ n>>31) ^ k.after
}

// random is the random part of the ID of a trace, by which consistent samplers decide: its lowest 56
// bits.
func (i *Identity) random(root uint64) uint64 { return max(i.traceLow.hash(root), 1) & (1<<56 - 1) }

// SpanID is never zero, which is no ID. Instead of zero it returns the ID of one other number in
// 2^64.
func (i *Identity) SpanID(sequence uint64) (id pcommon.SpanID) {
	binary.BigEndian.PutUint64(id[:], max(i.span.hash(sequence), 1))
	return id
}

// TraceID is never zero. Its lowest 56 bits are those of the low word.
func (i *Identity) TraceID(root uint64) (id pcommon.TraceID) {
	binary.BigEndian.PutUint64(id[:8], i.traceHigh.hash(root))
	binary.BigEndian.PutUint64(id[8:], max(i.traceLow.hash(root), 1))
	return id
}
