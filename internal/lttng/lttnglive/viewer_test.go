// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive_test

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"path"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/testkit/lttngdata"
)

// contents is the data of each stream, by path and channel.
type contents map[string][]byte

// readAll reads a session like a viewer, from Attach until the session is closed. It requests whole packets, so each
// stream equals the file that the tracer would have written.
func readAll(t testing.TB, v *lttnglive.Viewer, session uint64, seek lttnglive.Seek) contents {
	t.Helper()
	ctx := t.Context()
	read := contents{}
	a, streams, err := v.Attach(ctx, session, seek)
	require.NoError(t, err)
	var buf []byte
	metadata := func(streams []lttnglive.Stream, trace uint64) {
		for _, s := range streams {
			for s.Metadata && s.TraceID == trace {
				reply, err := a.Metadata(ctx, s.ID, buf)
				require.NoError(t, err)
				if reply.Status == lttnglive.MetadataNone {
					break
				}
				buf = reply.Data
				read[s.Path+"/"+s.Channel] = append(read[s.Path+"/"+s.Channel], reply.Data...)
			}
		}
	}
	told := func(added []lttnglive.Stream) {
		for _, s := range added {
			if s.Metadata {
				metadata(added, s.TraceID)
			}
		}
	}
	told(streams)
	ended := map[uint64]bool{}
	for {
		news, err := a.NewStreams(ctx)
		require.NoError(t, err)
		if news.Status == lttnglive.NewStreamsHangUp {
			break
		}
		streams = append(streams, news.Streams...)
		told(news.Streams)
		for _, s := range streams {
			for !s.Metadata && !ended[s.ID] {
				index, err := a.NextIndex(ctx, s.ID)
				require.NoError(t, err)
				if index.Flags.Has(lttnglive.FlagNewMetadata) {
					metadata(streams, s.TraceID)
				}
				if index.Status == lttnglive.IndexHangUp {
					ended[s.ID] = true
				}
				if index.Status != lttnglive.IndexOK {
					break
				}
				packet, err := a.Packet(ctx, s.ID, index.Offset, index.PacketLength(), buf)
				require.NoError(t, err)
				require.Equal(t, lttnglive.PacketOK, packet.Status)
				buf = packet.Data
				read[s.Path+"/"+s.Channel] = append(read[s.Path+"/"+s.Channel], packet.Data...)
			}
		}
	}
	require.NoError(t, a.Detach(ctx))
	return read
}

// capturedFiles returns the files of the same trace, as the tracer wrote them.
func capturedFiles(t *testing.T, name string) contents {
	t.Helper()
	files := contents{}
	trace, err := fs.Sub(lttngdata.OpenCapture(t, name), "ctf")
	require.NoError(t, err)
	require.NoError(t, fs.WalkDir(trace, ".", func(file string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && path.Base(path.Dir(file)) != "index" {
			files[file], err = fs.ReadFile(trace, file)
		}
		return err
	}))
	return files
}

// A viewer of a replay reads exactly the bytes that the relay daemon of the capture had written to files.
func TestAViewerReadsTheFilesOfEachCapture(t *testing.T) {
	for _, name := range captureNames {
		for _, seek := range []lttnglive.Seek{lttnglive.SeekBeginning, lttnglive.SeekLast} {
			t.Run(fmt.Sprintf("%s from the %s", name, seek), func(t *testing.T) {
				relay, _ := relayOf(t, name, lttnglive.RelayOptions{})
				v, err := lttnglive.Connect(t.Context(), pipe(t, relay, nil), lttnglive.ViewerOptions{})
				require.NoError(t, err)
				sessions, err := v.Sessions(t.Context())
				require.NoError(t, err)
				require.Len(t, sessions, 1)
				assert.Equal(t, name, sessions[0].Name)
				read := readAll(t, v, sessions[0].ID, seek)
				for file, want := range capturedFiles(t, name) {
					// Without assert.Equal, because its failure would print hundreds of kilobytes.
					assert.True(t, string(want) == string(read[file]), "%s: expected its %d bytes, got %d", file, len(want), len(read[file]))
				}
			})
		}
	}
}

func TestBothSidesUseTheLowerMinorVersion(t *testing.T) {
	for _, c := range []struct{ viewer, relay, agreed uint32 }{{15, 15, 15}, {15, 13, 13}, {4, 15, 4}, {14, 4, 4}} {
		relay, _ := relayOf(t, "cygok", lttnglive.RelayOptions{Minor: c.relay})
		v, err := lttnglive.Connect(t.Context(), pipe(t, relay, nil), lttnglive.ViewerOptions{Minor: c.viewer})
		require.NoError(t, err)
		assert.Equal(t, c.agreed, v.Minor())
		assert.Equal(t, lttnglive.Version{Major: 2, Minor: c.relay}, v.RelayVersion())
		sessions, err := v.Sessions(t.Context())
		require.NoError(t, err)
		require.Len(t, sessions, 1)
		assert.Equal(t, "cygok", sessions[0].Name)
		assert.NotEmpty(t, readAll(t, v, sessions[0].ID, lttnglive.SeekBeginning))
	}
}

func TestAViewerAnnouncesOnlySupportedVersions(t *testing.T) {
	conn, other := net.Pipe()
	defer conn.Close()
	defer other.Close()
	for _, minor := range []uint32{3, 16} {
		_, err := lttnglive.Connect(t.Context(), conn, lttnglive.ViewerOptions{Minor: minor})
		assert.ErrorContains(t, err, "relay daemon pipe, connect: expected a minor version from 4 to 15 to announce, got ")
	}
}

func TestADetachedSessionCannotBeRead(t *testing.T) {
	relay, recordings := relayOf(t, "cygok", lttnglive.RelayOptions{Restart: true})
	v, err := lttnglive.Connect(t.Context(), pipe(t, relay, nil), lttnglive.ViewerOptions{})
	require.NoError(t, err)
	a, _, err := v.Attach(t.Context(), recordings[0].Session.ID, lttnglive.SeekBeginning)
	require.NoError(t, err)
	assert.Equal(t, recordings[0].Session.ID, a.Session())
	require.NoError(t, a.Detach(t.Context()))
	require.NoError(t, a.Detach(t.Context()), "again")
	_, err = a.NextIndex(t.Context(), 61)
	require.ErrorIs(t, err, lttnglive.ErrDetached)
	assert.EqualError(t, err, "relay daemon pipe, get next index: the session was detached")
	// The viewer can attach again.
	_, _, err = v.Attach(t.Context(), recordings[0].Session.ID, lttnglive.SeekBeginning)
	require.NoError(t, err)
}

func TestDetachSendsNothingToRelayDaemonsThatDoNotKnowIt(t *testing.T) {
	relay, recordings := relayOf(t, "cygok", lttnglive.RelayOptions{Minor: 7})
	v, err := lttnglive.Connect(t.Context(), pipe(t, relay, nil), lttnglive.ViewerOptions{})
	require.NoError(t, err)
	a, _, err := v.Attach(t.Context(), recordings[0].Session.ID, lttnglive.SeekBeginning)
	require.NoError(t, err)
	require.NoError(t, a.Detach(t.Context()))
	_, err = a.NewStreams(t.Context())
	require.ErrorIs(t, err, lttnglive.ErrDetached)
	// The relay daemon still has it attached.
	sessions, err := v.Sessions(t.Context())
	require.NoError(t, err)
	assert.Empty(t, sessions, "all of the recording exists, so it is closed")
}

func TestTheConnectionIsUsableAfterAStatusError(t *testing.T) {
	relay, recordings := relayOf(t, "cygok", lttnglive.RelayOptions{Restart: true})
	v, err := lttnglive.Connect(t.Context(), pipe(t, relay, nil), lttnglive.ViewerOptions{})
	require.NoError(t, err)
	ctx := t.Context()
	var status *lttnglive.StatusError
	refused := func(err error, want fmt.Stringer, text string) {
		t.Helper()
		require.ErrorAs(t, err, &status)
		assert.Equal(t, want, status.Status)
		assert.EqualError(t, err, text)
	}
	_, _, err = v.Attach(ctx, 4711, lttnglive.SeekBeginning)
	refused(err, lttnglive.AttachUnknown, "relay daemon pipe, attach session: expected OK, got session unknown")
	id := recordings[0].Session.ID
	_, _, err = v.Attach(ctx, id, lttnglive.Seek(7))
	refused(err, lttnglive.AttachBadSeek, "relay daemon pipe, attach session: expected OK, got bad seek")
	a, _, err := v.Attach(ctx, id, lttnglive.SeekLast)
	require.NoError(t, err)
	_, err = a.NextIndex(ctx, 4711)
	refused(err, lttnglive.IndexError, "relay daemon pipe, get next index: expected OK, got error")
	_, err = a.Metadata(ctx, 4711, nil)
	refused(err, lttnglive.MetadataError, "relay daemon pipe, get metadata: expected OK, got error")
	_, err = a.Packet(ctx, 4711, 0, 10, nil)
	refused(err, lttnglive.PacketError, "relay daemon pipe, get packet: expected OK, got error")
	_, err = a.Packet(ctx, 4711, 0, 1<<32, nil)
	require.EqualError(t, err, "relay daemon pipe, get packet: expected a request for at most 67108864 bytes of a packet, got 4294967296")

	other, err := lttnglive.Connect(ctx, pipe(t, relay, nil), lttnglive.ViewerOptions{})
	require.NoError(t, err)
	_, _, err = other.Attach(ctx, id, lttnglive.SeekLast)
	refused(err, lttnglive.AttachAlready, "relay daemon pipe, attach session: expected OK, got another viewer is attached")

	reply, err := a.NewStreams(ctx)
	require.NoError(t, err)
	assert.Len(t, reply.Streams, 3)
}

// A packet is read into the caller's buffer if that is large enough. Longer metadata is read into a larger one.
func TestReadingReusesBuffers(t *testing.T) {
	relay, recordings := relayOf(t, "cyg1", lttnglive.RelayOptions{})
	v, err := lttnglive.Connect(t.Context(), pipe(t, relay, nil), lttnglive.ViewerOptions{})
	require.NoError(t, err)
	ctx := context.Background()
	a, _, err := v.Attach(ctx, recordings[0].Session.ID, lttnglive.SeekBeginning)
	require.NoError(t, err)
	_, err = a.NewStreams(ctx)
	require.NoError(t, err)
	index, err := a.NextIndex(ctx, 5)
	require.NoError(t, err)
	buf := make([]byte, 0, index.PacketLength())
	for range 3 {
		packet, err := a.Packet(ctx, 5, index.Offset, index.ContentLength(), buf)
		require.NoError(t, err)
		require.Len(t, packet.Data, int(index.ContentLength()))
		assert.Same(t, &buf[:1][0], &packet.Data[0])
	}
	metadata, err := a.Metadata(ctx, 6, buf)
	require.NoError(t, err)
	require.Equal(t, lttnglive.MetadataOK, metadata.Status)
	assert.Len(t, metadata.Data, 16384)
}
