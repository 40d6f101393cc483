// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/testkit/lttngdata"
)

// The expected figures were counted by the makers of the captures.
func TestOpenTheCaptures(t *testing.T) {
	cases := []struct {
		name     string
		requests int
		replies  int
		indexes  map[lttnglive.IndexStatus]int
		asked    map[lttnglive.Command]int // without commands that the viewer sends only once
	}{
		{"jul1", 5396, 82924, indexes(9, 24, 2, 149), asked(15, 7, 9)},
		{"julctx", 4064, 71312, indexes(10, 6, 2, 113), asked(13, 5, 10)},
		{"cygok", 2408, 55108, indexes(6, 12, 2, 51), asked(11, 4, 6)},
		{"cyg1", 7880, 442844, indexes(98, 7, 2, 53), asked(12, 4, 98)},
		{"tp1", 5252, 94816, indexes(13, 27, 2, 136), asked(12, 4, 13)},
		{"meta1", 5024, 94244, indexes(10, 10, 2, 147), asked(14, 6, 10)},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := Open(lttngdata.CaptureFile(t, c.name))
			require.NoError(t, err)
			assert.Len(t, got.ViewerToRelay, c.requests)
			assert.Len(t, got.RelayToViewer, c.replies)
			assert.Equal(t, uint32(4), got.Minor)
			counts, indexes := map[lttnglive.Command]int{}, map[lttnglive.IndexStatus]int{}
			var last time.Duration
			for _, e := range got.Exchanges {
				counts[e.Request.Command()]++
				if index, ok := e.Reply.(lttnglive.Index); ok {
					indexes[index.Status]++
				}
				assert.GreaterOrEqual(t, e.At, last)
				last = e.At
			}
			assert.Equal(t, c.indexes, indexes)
			for command, n := range c.asked {
				assert.Equal(t, n, counts[command], command)
			}
			for _, command := range []lttnglive.Command{
				lttnglive.CommandConnect, lttnglive.CommandCreateSession, lttnglive.CommandListSessions,
				lttnglive.CommandAttachSession, lttnglive.CommandDetachSession,
			} {
				assert.Equal(t, 1, counts[command], command)
			}
		})
	}
}

func indexes(ok, retry, hangUp, inactive int) map[lttnglive.IndexStatus]int {
	return map[lttnglive.IndexStatus]int{
		lttnglive.IndexOK: ok, lttnglive.IndexRetry: retry, lttnglive.IndexHangUp: hangUp, lttnglive.IndexInactive: inactive,
	}
}

func asked(newStreams, metadata, packets int) map[lttnglive.Command]int {
	return map[lttnglive.Command]int{
		lttnglive.CommandGetNewStreams: newStreams, lttnglive.CommandGetMetadata: metadata, lttnglive.CommandGetPacket: packets,
	}
}

func TestACaptureAsARecording(t *testing.T) {
	c, err := Open(lttngdata.CaptureFile(t, "meta1"))
	require.NoError(t, err)
	recordings, err := c.Recordings()
	require.NoError(t, err)
	require.Len(t, recordings, 1)
	r := recordings[0]
	assert.Equal(t, lttnglive.Session{ID: 8, LiveTimer: 200 * time.Millisecond, Host: "vm", Name: "meta1"}, r.Session)
	// The stream is sent 6.98 s after the first byte, the session was attached 0.04 s after it.
	assert.Equal(t, 6936, int(r.End.Milliseconds()))
	require.Len(t, r.Streams, 3)
	metadata, second, first := r.Streams[0], r.Streams[1], r.Streams[2]
	assert.Equal(t, lttnglive.Stream{ID: 57, TraceID: 19, Metadata: true, Path: "ust/uid/0/64-bit", Channel: "metadata"}, metadata.Stream)
	assert.Equal(t, lttnglive.Never, metadata.End)
	require.Len(t, metadata.Pieces, 2)
	assert.Len(t, metadata.Pieces[0].Data, 16384)
	assert.Len(t, metadata.Pieces[1].Data, 4096)
	assert.Equal(t, "channel0_1", second.Channel)
	assert.Equal(t, "channel0_0", first.Channel)
	packets := 0
	for _, s := range []lttnglive.RecordedStream{first, second} {
		assert.Equal(t, second.At, s.At)
		assert.Greater(t, s.End, s.Steps[len(s.Steps)-1].At)
		for i, step := range s.Steps {
			if i > 0 {
				assert.NotEqual(t, s.Steps[i-1].Index, step.Index, "a repeated promise")
			}
			assert.Zero(t, step.Index.Flags)
			if step.Index.Status != lttnglive.IndexOK {
				continue
			}
			packets++
			magic := make([]byte, 4)
			_, err := s.Packets.ReadAt(magic, int64(step.Index.Offset))
			require.NoError(t, err)
			assert.Equal(t, []byte{0xC1, 0x1F, 0xFC, 0xC1}, magic)
		}
	}
	assert.Equal(t, 10, packets)
	// The relay accepts all of it, so it is in order.
	_, err = lttnglive.NewRelay(recordings, lttnglive.RelayOptions{})
	require.NoError(t, err)
}

// made returns the files of a small capture: a session is attached, its stream is sent and ends.
func made(exchanges ...Exchange) map[string][]byte {
	files := map[string][]byte{requestsFile: {}, repliesFile: {}, timesFile: []byte("1000\tc2s\t0\t36\n")}
	for i, e := range exchanges {
		begin := len(files[repliesFile])
		files[requestsFile] = lttnglive.AppendRequest(files[requestsFile], e.Request)
		files[repliesFile] = e.Reply.AppendTo(files[repliesFile], 4)
		files[timesFile] = appendLine(files[timesFile], int64(1000+1000*(i+1)), begin, len(files[repliesFile])-begin)
	}
	return files
}

func appendLine(b []byte, at int64, offset, length int) []byte {
	return append(b, strings.Join([]string{fmt.Sprint(at), fromRelay, fmt.Sprint(offset), fmt.Sprint(length)}, "\t")+"\n"...)
}

var (
	told     = lttnglive.Stream{ID: 5, TraceID: 2}
	connect  = exchange(lttnglive.ConnectRequest{Version: lttnglive.Version{Major: 2, Minor: 4}}, lttnglive.ConnectReply{Version: lttnglive.Version{Major: 2, Minor: 13}})
	list     = exchange(lttnglive.ListSessionsRequest{}, lttnglive.ListSessionsReply{Sessions: []lttnglive.Session{{ID: 1, Name: "made"}}})
	attach   = exchange(lttnglive.AttachSessionRequest{Session: 1}, lttnglive.AttachSessionReply{Status: lttnglive.AttachOK, Streams: []lttnglive.Stream{told}})
	newIndex = exchange(lttnglive.GetNextIndexRequest{Stream: 5}, lttnglive.Index{Status: lttnglive.IndexOK, Offset: 8, PacketSize: 64, ContentSize: 57})
)

func exchange(request lttnglive.Request, reply lttnglive.Reply) Exchange {
	return Exchange{Request: request, Reply: reply}
}

// readAt returns the exchange for bytes of a packet.
func readAt(offset uint64, text string) Exchange {
	return exchange(lttnglive.GetPacketRequest{Stream: 5, Offset: offset, Length: uint32(len(text))},
		lttnglive.PacketReply{Status: lttnglive.PacketOK, Data: []byte(text)})
}

func TestPacketsAreReadInAnyParts(t *testing.T) {
	files := made(connect, list, attach, newIndex, readAt(12, "4567"), readAt(8, "01"), readAt(8, "0123"), readAt(40, "far"))
	c, err := parse(files[requestsFile], files[repliesFile], files[timesFile])
	require.NoError(t, err)
	recordings, err := c.Recordings()
	require.NoError(t, err)
	packets := recordings[0].Streams[0].Packets
	for _, read := range []struct {
		offset int64
		length int
		want   string
		err    error
	}{
		{8, 8, "01234567", nil}, {10, 3, "234", nil}, {15, 1, "7", nil}, {40, 3, "far", nil},
		{0, 1, "", io.ErrUnexpectedEOF}, {14, 4, "67", io.ErrUnexpectedEOF}, {42, 2, "r", io.ErrUnexpectedEOF},
	} {
		b := make([]byte, read.length)
		n, err := packets.ReadAt(b, read.offset)
		assert.Equal(t, read.err, err)
		assert.Equal(t, read.want, string(b[:n]))
	}
	assert.Equal(t, lttnglive.Never, recordings[0].End, "it was not seen to end")
	assert.Equal(t, lttnglive.Never, recordings[0].Streams[0].End)
}

func TestCapturesThatAreNoRecording(t *testing.T) {
	again := exchange(lttnglive.GetNewStreamsRequest{Session: 1}, lttnglive.NewStreamsReply{Status: lttnglive.NewStreamsOK, Streams: []lttnglive.Stream{told}})
	cases := []struct {
		name      string
		exchanges []Exchange
		err       string
	}{
		{"a session that was not listed", []Exchange{connect, attach}, "relay-to-viewer.bin from byte 20, attach session: expected a session that was listed before, got 1"},
		{"a stream sent twice", []Exchange{connect, list, attach, again}, "get new streams: expected stream 5 once, got it again"},
		{"a packet that was not read", []Exchange{connect, list, attach, newIndex}, "session 1: stream 5: expected a request of the viewer for the packet at 8 with its 8 bytes of content, got none"},
		{"a packet that was read in part", []Exchange{connect, list, attach, newIndex, readAt(8, "0123"), readAt(13, "567")}, "session 1: stream 5: expected a request of the viewer for the packet at 8 with its 8 bytes of content, got none"},
		{"overlapping parts", []Exchange{connect, list, attach, newIndex, readAt(8, "01234567"), readAt(9, "12345678")}, "session 1: stream 5: expected bytes from offset 9 that do not overlap with others, got a part of those from 8 to 16"},
		{"a packet at offset 2^63", []Exchange{connect, list, attach, readAt(1<<63, "0")}, "get packet: expected a packet whose end is below offset 2^63, got one at 9223372036854775808"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			files := made(c.exchanges...)
			got, err := parse(files[requestsFile], files[repliesFile], files[timesFile])
			require.NoError(t, err)
			_, err = got.Recordings()
			assert.ErrorContains(t, err, c.err)
		})
	}
}

func TestALastRequestMayBeWithoutReply(t *testing.T) {
	files := made(connect, list)
	files[requestsFile] = lttnglive.AppendRequest(files[requestsFile], lttnglive.CreateSessionRequest{})
	files[timesFile] = append(files[timesFile], "5000\tc2s\t52\tEOF\n6000\ts2c\t363\tEOF\n"...)
	c, err := Read(zipOf(t, files))
	require.NoError(t, err)
	require.Len(t, c.Exchanges, 2)
	assert.Equal(t, 2*time.Microsecond, c.Exchanges[1].At)
}

func TestCapturesThatAreBroken(t *testing.T) {
	cases := []struct {
		name   string
		change func(files map[string][]byte)
		err    string
	}{
		{"no requests", func(f map[string][]byte) { delete(f, requestsFile) }, "expected a file viewer-to-relay.bin, got none"},
		{"no times", func(f map[string][]byte) { delete(f, timesFile) }, "expected a file times.tsv, got none"},
		{"a file twice", func(f map[string][]byte) { f["other/"+timesFile] = nil }, "expected one file times.tsv, got a second: "},
		{"a truncated request", func(f map[string][]byte) { f[requestsFile] = f[requestsFile][:40] }, "viewer-to-relay.bin from byte 36: expected a whole request, got 4 bytes"},
		{"an unknown command", func(f map[string][]byte) { f[requestsFile][47] = 99 }, "viewer-to-relay.bin from byte 36: byte 8: expected a command from 1 to 9, got 99"},
		{"a truncated reply", func(f map[string][]byte) { f[repliesFile] = f[repliesFile][:30] }, "relay-to-viewer.bin from byte 20: expected a whole reply to list sessions, got 10 bytes"},
		{"a wrong reply", func(f map[string][]byte) { f[repliesFile][20] = 99 }, "relay-to-viewer.bin from byte 20, list sessions: byte 0: expected at most 4096 sessions, got "},
		{"a reply too many", func(f map[string][]byte) { f[repliesFile] = append(f[repliesFile], 0, 0) }, "relay-to-viewer.bin: expected its end at byte 363, after the last reply, got 2 more bytes"},
		{"times that end early", func(f map[string][]byte) { f[timesFile] = []byte("1000\ts2c\t0\t20\n") }, "times.tsv: expected a time for byte 362, got none"},
		{"a line without length", func(f map[string][]byte) { f[timesFile] = []byte("1000\ts2c\t0\n") }, `times.tsv: line 1: expected nanoseconds, c2s or s2c, offset, and length or EOF, got "1000\ts2c\t0"`},
		{"another direction", func(f map[string][]byte) { f[timesFile] = []byte("1000\ts2s\t0\t20\n") }, "times.tsv: line 1: expected nanoseconds, c2s or s2c, offset, and length or EOF, got "},
		{"an invalid time", func(f map[string][]byte) { f[timesFile] = []byte("soon\ts2c\t0\t20\n") }, "times.tsv: line 1: expected nanoseconds: "},
		{"an invalid offset", func(f map[string][]byte) { f[timesFile] = []byte("1000\ts2c\t-1\t20\n") }, "times.tsv: line 1: expected an offset: "},
		{"an invalid length", func(f map[string][]byte) { f[timesFile] = []byte("1000\ts2c\t0\tx\n") }, "times.tsv: line 1: expected a length: "},
		{"a gap", func(f map[string][]byte) { f[timesFile] = []byte("1000\ts2c\t1\t20\n") }, "times.tsv: line 1: expected a piece after the previous one, at the same time or later, got "},
		{"a time before the previous one", func(f map[string][]byte) { f[timesFile] = []byte("1000\ts2c\t0\t20\n999\ts2c\t20\t400\n") }, "times.tsv: line 2: expected a piece after the previous one, at the same time or later, got "},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			files := made(connect, list)
			c.change(files)
			_, err := Read(zipOf(t, files))
			assert.ErrorContains(t, err, c.err)
		})
	}
	t.Run("no zip file", func(t *testing.T) {
		name := filepath.Join(t.TempDir(), "x.zip")
		_, err := Open(name)
		require.ErrorIs(t, err, os.ErrNotExist)
		require.NoError(t, os.WriteFile(name, []byte("x"), 0o600))
		_, err = Open(name)
		assert.EqualError(t, err, "capture "+name+": expected a zip file: zip: not a valid zip file")
	})
}

// zipOf packs files into a zip file, in order of their names, with an additional file.
func zipOf(t *testing.T, files map[string][]byte) (io.ReaderAt, int64) {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range append(slices.Sorted(maps.Keys(files)), "commands.txt") {
		f, err := z.Create("made/" + name)
		require.NoError(t, err)
		_, err = f.Write(files[name])
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	return bytes.NewReader(b.Bytes()), int64(b.Len())
}
