// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf_test

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
)

// seeds is the number of random traces that the test reads.
const seeds = 500

func TestRandomTracesAreReadAsTheyWereWritten(t *testing.T) {
	for seed := range uint64(seeds) {
		want := newRandomTrace(seed, false)
		trace := ctf.NewTrace()
		require.NoError(t, trace.Append([]byte(want.metadata)), "seed %d\n%s", seed, want.metadata)
		require.Empty(t, trace.Metadata().Notes)
		require.Equal(t, want.events, eventTexts(t, trace, want.packet), "seed %d\n%s", seed, want.metadata)
	}
}

// eventTexts returns the events of a packet in the format of babeltrace with --names=all and --clock-seconds.
func eventTexts(t *testing.T, trace *ctf.Trace, packet []byte) []string {
	t.Helper()
	var texts []string
	readAll(t, trace, [][]byte{packet}, func(r *ctf.Reader) {
		e := &r.Event
		ns := e.UnixNano()
		b := &renderer{}
		fmt.Fprintf(b, "%d.%09d name = %s", ns/int64(time.Second), ns%int64(time.Second), e.Class.Name)
		b.scope("stream.packet.context", &r.Packet.Values, e.Class.Stream.PacketContext)
		b.scope("stream.event.context", &e.Values, e.Class.Stream.EventCommonContext)
		b.scope("event.context", &e.Values, e.Class.Context)
		b.scope("event.fields", &e.Values, e.Class.Fields)
		texts = append(texts, b.String())
	})
	return texts
}

func TestMetadataMayArriveInAnyPieces(t *testing.T) {
	want := newRandomTrace(3, false)
	for name, whole := range map[string][]byte{
		"plain":                         []byte(want.metadata),
		"packets, little endian":        metadataPackets(want.metadata, binary.LittleEndian),
		"packets, big endian":           metadataPackets(want.metadata, binary.BigEndian),
		"with a comment that ends late": []byte(want.metadata + "/* ; */"),
	} {
		for _, size := range []int{1, 2, 7, 36, 37, 255, 1000, len(whole)} {
			trace := ctf.NewTrace()
			for rest := whole; len(rest) > 0; rest = rest[min(size, len(rest)):] {
				require.NoError(t, trace.Append(rest[:min(size, len(rest))]), "%s, pieces of %d", name, size)
			}
			require.Equal(t, want.events, eventTexts(t, trace, want.packet), "%s, pieces of %d", name, size)
		}
	}
}
