// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctfdir_test

import (
	"errors"
	"io"
	"os"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/ctf/ctfdir"
	"github.com/callbraid/callbraid/internal/testkit/lttngdata"
)

const trace = `trace { major = 1; minor = 8; byte_order = le; packet.header := struct { integer { size = 8; } stream_id; }; };
stream { id = 7; packet.context := struct { integer { size = 16; } packet_size; integer { size = 16; } content_size; }; };
event { name = x; stream_id = 7; fields := struct { integer { size = 8; } a; }; };`

func TestTracesAreFoundAndReadFromDirectories(t *testing.T) {
	files := lttngdata.OpenCapture(t, "cygok")
	dirs, err := ctfdir.Find(files, ".")
	require.NoError(t, err)
	require.Equal(t, []string{"ctf/ust/uid/0/64-bit"}, dirs)
	dir, err := ctfdir.Open(files, dirs[0])
	require.NoError(t, err)
	require.Equal(t, []string{"ch_0", "ch_1"}, dir.Streams)
	require.Equal(t, "vm", dir.Trace.Env("hostname"))
	packets, events := 0, 0
	for _, name := range dir.Streams {
		s, err := dir.Stream(name)
		require.NoError(t, err)
		offset := int64(0)
		for {
			packet, err := s.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			require.Equal(t, offset, s.Offset)
			require.Equal(t, uint64(len(packet))*8, s.Reader.Packet.Size)
			offset += int64(len(packet))
			packets++
			for s.Reader.Next() {
				events++
			}
			require.NoError(t, s.Reader.Err())
		}
		require.NoError(t, s.Close())
	}
	require.Equal(t, 245, events)
	require.NotZero(t, packets)
}

// files is a directory with a trace and a file of packets.
func files(packets []byte) fstest.MapFS {
	return fstest.MapFS{
		"t/metadata":      {Data: []byte(trace)},
		"t/stream":        {Data: packets},
		"t/.hidden":       {Data: []byte("no packets")},
		"t/index/s.idx":   {Data: []byte("no packets")},
		"empty/else/file": {},
	}
}

func TestPacketsOfAnySizeAreCutOutOfTheirFile(t *testing.T) {
	var packets []byte
	sizes := []int{5, 6, 4096, 4095, 8191, 5, 100}
	for i, size := range sizes {
		packet := make([]byte, size)
		bits := size * 8
		copy(packet, []byte{7, byte(bits), byte(bits >> 8), byte(bits), byte(bits >> 8)})
		packet[len(packet)-1] = byte(i)
		if size == 5 {
			packet[4] = byte(bits >> 8)
		}
		packets = append(packets, packet...)
	}
	dir, err := ctfdir.Open(files(packets), "t")
	require.NoError(t, err)
	require.Equal(t, []string{"stream"}, dir.Streams)
	s, err := dir.Stream("stream")
	require.NoError(t, err)
	for i, size := range sizes {
		packet, err := s.Next()
		require.NoError(t, err, "packet %d", i)
		require.Len(t, packet, size)
		n := 0
		for s.Reader.Next() {
			n++
		}
		require.Equal(t, size-5, n)
	}
	_, err = s.Next()
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, s.Close())
}

func TestFilesThatAreNoTraces(t *testing.T) {
	fsys := files([]byte{7, 48, 0, 40, 0, 1, 7, 0xFF, 0xFF, 0, 0})
	dir, err := ctfdir.Open(fsys, "t")
	require.NoError(t, err)
	s, err := dir.Stream("stream")
	require.NoError(t, err)
	_, err = s.Next()
	require.NoError(t, err)
	_, err = s.Next()
	require.EqualError(t, err, "t/stream: packet at byte 6: expected a packet of 1 to 1073741824 whole bytes, got 65535 bits")

	fsys["t/stream"].Data = []byte{7, 0xF8, 0xFF, 40, 0}
	s, err = dir.Stream("stream")
	require.NoError(t, err)
	_, err = s.Next()
	require.EqualError(t, err, "t/stream: packet at byte 0: expected a packet of 8191 bytes, got 5: unexpected EOF")

	fsys["t/stream"].Data = []byte{7, 1}
	s, err = dir.Stream("stream")
	require.NoError(t, err)
	_, err = s.Next()
	require.ErrorContains(t, err, "t/stream: packet at byte 0: packet context")

	_, err = dir.Stream("none")
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = ctfdir.Open(fsys, "empty")
	require.ErrorIs(t, err, os.ErrNotExist)
	fsys["t/metadata"].Data = []byte("nonsense;")
	_, err = ctfdir.Open(fsys, "t")
	require.EqualError(t, err, `t/metadata: metadata, line 1, column 1: expected a declaration, got the word "nonsense"`)
	_, err = ctfdir.Find(fsys, "nowhere")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestAPacketWithoutSizesIsTheWholeFile(t *testing.T) {
	data := make([]byte, 100_000)
	fsys := fstest.MapFS{
		"metadata": {Data: []byte("trace { major = 1; minor = 8; byte_order = le; }; event { fields := struct { integer { size = 8; } a; }; };")},
		"stream":   {Data: data},
	}
	dir, err := ctfdir.Open(fsys, ".")
	require.NoError(t, err)
	s, err := dir.Stream("stream")
	require.NoError(t, err)
	packet, err := s.Next()
	require.NoError(t, err)
	require.Equal(t, data, packet)
	_, err = s.Next()
	require.ErrorIs(t, err, io.EOF)
}
