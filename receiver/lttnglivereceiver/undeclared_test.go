// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"encoding/binary"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/lttng/sim/lttngrelay"
	"github.com/callbraid/callbraid/internal/lttng/sim/usttrace"
)

// streamBlocks matches the declarations of stream classes.
var streamBlocks = regexp.MustCompile(`(?s)\nstream \{.*?\n\};\n`)

// declaredLater returns a session whose relay daemon sends the declarations of stream classes so long after the first packet.
func declaredLater(t *testing.T, later time.Duration) (*lttnglive.Recording, usttrace.Counts) {
	t.Helper()
	dir := t.TempDir()
	written, err := usttrace.Write(dir, usttrace.Options{Events: 2000, Contexts: true})
	require.NoError(t, err)
	source, err := lttngrelay.FromDirectory(dir)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, source.Close()) })
	r := source.Recordings[0]
	for i := range r.Streams {
		s := &r.Streams[i]
		s.End = max(s.End, later)
		if len(s.Pieces) == 0 {
			continue
		}
		require.Len(t, s.Pieces, 1)
		text := textOfMetadata(s.Pieces[0].Data)
		blocks := streamBlocks.FindAllString(text, -1)
		require.NotEmpty(t, blocks)
		s.Pieces = []lttnglive.MetadataPiece{
			{At: s.Pieces[0].At, Data: usttrace.MetadataPackets(streamBlocks.ReplaceAllString(text, "\n"))},
			{At: s.Pieces[0].At + later, Data: usttrace.MetadataPackets(strings.Join(blocks, ""))},
		}
	}
	r.End = max(r.End, later)
	return r, written
}

// textOfMetadata returns the text in packets of metadata (CTF 1.8.3, section 7.1).
func textOfMetadata(packets []byte) string {
	const header, contentSize, packetSize = 37, 24, 28
	var text []byte
	for len(packets) > 0 {
		text = append(text, packets[header:binary.NativeEndian.Uint32(packets[contentSize:])/8]...)
		packets = packets[binary.NativeEndian.Uint32(packets[packetSize:])/8:]
	}
	return string(text)
}

// clock returns a clock that begins now.
func clock() func() time.Duration {
	begin := time.Now()
	return func() time.Duration { return time.Since(begin) }
}

// A relay daemon can send the first packet of a process before the metadata that declares the class of its stream.
func TestAPacketWaitsForTheMetadataThatDeclaresIt(t *testing.T) {
	recording, written := declaredLater(t, 300*time.Millisecond)
	r := newRelay(t, []*lttnglive.Recording{recording}, lttnglive.RelayOptions{Clock: clock()})
	b := newBed(t, reading(r.address()))
	b.awaitRecords(written.Events)
	b.await("the end", func() bool { return b.said.FilterMessage("The session was closed").Len() == 1 })
	b.shutdown()
	assert.Zero(t, b.metric("receiver_lttng_live_bad_data"))
}

func TestAPacketThatIsNeverDeclaredIsUnreadable(t *testing.T) {
	recording, _ := declaredLater(t, time.Hour)
	r := newRelay(t, []*lttnglive.Recording{recording}, lttnglive.RelayOptions{Clock: clock()})
	b := newBed(t, reading(r.address()), func(_ *bed, c *Config) { c.MaxDelay = 10 * time.Millisecond })
	said := b.awaitSaid(dropped)
	assert.Contains(t, said.ContextMap()["error"], "expected the ID of a stream class that is known")
	b.shutdown()
}
