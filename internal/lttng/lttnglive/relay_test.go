// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
)

// packetStep returns a packet of 8 bytes at a second of the recording.
func packetStep(at int, offset, begin, end uint64) lttnglive.Step {
	return lttnglive.Step{At: seconds(at), Index: lttnglive.Index{
		Offset: offset, PacketSize: 64, ContentSize: 60, TimestampBegin: begin, TimestampEnd: end, Status: lttnglive.IndexOK,
	}}
}

// promiseStep returns a promise at a second of the recording.
func promiseStep(at int, until uint64) lttnglive.Step {
	return lttnglive.Step{At: seconds(at), Index: lttnglive.Index{TimestampEnd: until, Status: lttnglive.IndexInactive}}
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// recording returns a session with a stream of metadata and one of packets from the beginning, and another of each
// later.
func recording() *lttnglive.Recording {
	return &lttnglive.Recording{
		Session: lttnglive.Session{ID: 1, LiveTimer: time.Second, Host: "vm", Name: "made"},
		Streams: []lttnglive.RecordedStream{
			{
				Stream: lttnglive.Stream{ID: 10, TraceID: 7, Metadata: true, Path: "ust", Channel: "metadata"},
				End:    seconds(20),
				Pieces: []lttnglive.MetadataPiece{{Data: []byte("first, ")}, {At: seconds(4), Data: []byte("second")}},
			},
			{
				Stream:  lttnglive.Stream{ID: 11, TraceID: 7, Path: "ust", Channel: "ch_0"},
				End:     seconds(8),
				Packets: bytes.NewReader([]byte("packet-0packet-1")),
				Steps: []lttnglive.Step{
					packetStep(0, 0, 100, 200), promiseStep(2, 300), promiseStep(3, 400), packetStep(5, 8, 400, 500), promiseStep(7, 700),
				},
			},
			{
				Stream: lttnglive.Stream{ID: 20, TraceID: 8, Metadata: true, Path: "ust/pid", Channel: "metadata"},
				At:     seconds(10),
				End:    seconds(20),
			},
			{
				Stream:  lttnglive.Stream{ID: 21, TraceID: 8, Path: "ust/pid", Channel: "ch_0"},
				At:      seconds(10),
				End:     seconds(20),
				Packets: bytes.NewReader([]byte("packet-0")),
				Steps:   []lttnglive.Step{packetStep(11, 0, 1100, 1200)},
			},
		},
		End: seconds(20),
	}
}

// clock is a clock that the test sets.
type clock struct{ now atomic.Int64 }

func (c *clock) read() time.Duration { return time.Duration(c.now.Load()) }
func (c *clock) set(at int)          { c.now.Store(int64(seconds(at))) }

// attachMade attaches the session of recording at a second of the clock.
func attachMade(t *testing.T, relay *lttnglive.Relay, seek lttnglive.Seek) (*lttnglive.Viewer, *lttnglive.Attachment, []lttnglive.Stream) {
	t.Helper()
	v, err := lttnglive.Connect(t.Context(), pipe(t, relay, nil), lttnglive.ViewerOptions{})
	require.NoError(t, err)
	a, streams, err := v.Attach(t.Context(), 1, seek)
	require.NoError(t, err)
	return v, a, streams
}

func TestASessionWhileItsTimeRuns(t *testing.T) {
	var c clock
	c.set(1000)
	relay, err := lttnglive.NewRelay([]*lttnglive.Recording{recording()}, lttnglive.RelayOptions{Clock: c.read})
	require.NoError(t, err)
	v, a, streams := attachMade(t, relay, lttnglive.SeekBeginning)
	ctx := t.Context()
	at := func(second int) { c.set(1000 + second) }
	index := func(stream uint64, status lttnglive.IndexStatus, flags lttnglive.Flags, until uint64) {
		t.Helper()
		i, err := a.NextIndex(ctx, stream)
		require.NoError(t, err)
		assert.Equal(t, status, i.Status)
		assert.Equal(t, flags, i.Flags)
		assert.Equal(t, until, i.TimestampEnd)
	}
	metadata := func(stream uint64, status lttnglive.MetadataStatus, text string) {
		t.Helper()
		reply, err := a.Metadata(ctx, stream, nil)
		require.NoError(t, err)
		assert.Equal(t, status, reply.Status)
		assert.Equal(t, text, string(reply.Data))
	}
	packet := func(stream, offset uint64, text string) {
		t.Helper()
		reply, err := a.Packet(ctx, stream, offset, uint64(len(text)), nil)
		require.NoError(t, err)
		assert.Equal(t, text, string(reply.Data))
	}
	newStreams := func(status lttnglive.NewStreamsStatus, want ...uint64) {
		t.Helper()
		reply, err := a.NewStreams(ctx)
		require.NoError(t, err)
		assert.Equal(t, status, reply.Status)
		var ids []uint64
		for _, s := range reply.Streams {
			ids = append(ids, s.ID)
		}
		assert.Equal(t, want, ids)
	}
	isError := func(_ any, err error) {
		t.Helper()
		var status *lttnglive.StatusError
		require.ErrorAs(t, err, &status)
	}

	require.Len(t, streams, 2)
	sessions, err := v.Sessions(ctx)
	require.NoError(t, err)
	assert.Equal(t, []lttnglive.Session{{ID: 1, LiveTimer: time.Second, Clients: 1, Streams: 2, Host: "vm", Name: "made"}}, sessions)
	newStreams(lttnglive.NewStreamsOK)
	index(11, lttnglive.IndexOK, lttnglive.FlagNewMetadata, 200)
	packet(11, 0, "packet-0")
	packet(11, 3, "ket")
	metadata(10, lttnglive.MetadataOK, "first, ")
	metadata(10, lttnglive.MetadataNone, "")
	index(11, lttnglive.IndexRetry, 0, 0)
	isError(a.Packet(ctx, 11, 8, 8, nil)) // it does not exist yet
	isError(a.Packet(ctx, 11, 3, 6, nil)) // after the end of the packet
	at(2)
	index(11, lttnglive.IndexInactive, 0, 300)
	index(11, lttnglive.IndexInactive, 0, 300)
	at(3)
	index(11, lttnglive.IndexInactive, 0, 400)
	at(4)
	index(11, lttnglive.IndexInactive, lttnglive.FlagNewMetadata, 400)
	metadata(10, lttnglive.MetadataOK, "second")
	at(6)
	index(11, lttnglive.IndexOK, 0, 500)
	packet(11, 8, "packet-1")
	isError(a.Packet(ctx, 11, 0, 8, nil)) // of the previous packet
	index(11, lttnglive.IndexRetry, 0, 0)
	at(7)
	index(11, lttnglive.IndexInactive, 0, 700)
	at(8)
	index(11, lttnglive.IndexHangUp, 0, 0)
	isError(a.NextIndex(ctx, 11)) // the stream is gone
	newStreams(lttnglive.NewStreamsOK)
	at(10)
	newStreams(lttnglive.NewStreamsOK, 20, 21)
	at(11)
	index(21, lttnglive.IndexOK, lttnglive.FlagNewMetadata, 1200) // there is no metadata at all yet
	index(20, lttnglive.IndexHangUp, 0, 0)                        // the stream has metadata, no packets
	isError(a.Metadata(ctx, 21, nil))                             // the stream has packets, no metadata
	at(20)
	newStreams(lttnglive.NewStreamsOK)
	index(21, lttnglive.IndexHangUp, lttnglive.FlagNewMetadata, 0)
	newStreams(lttnglive.NewStreamsHangUp)
	metadata(10, lttnglive.MetadataNone, "") // the stream is gone afterwards
	isError(a.Metadata(ctx, 10, nil))
	metadata(20, lttnglive.MetadataNone, "") // a stream that never had metadata stays
	metadata(20, lttnglive.MetadataNone, "")
	sessions, err = v.Sessions(ctx)
	require.NoError(t, err)
	assert.Empty(t, sessions)
	require.NoError(t, a.Detach(ctx))
	_, _, err = v.Attach(ctx, 1, lttnglive.SeekBeginning)
	isError(nil, err)
}

func TestASessionContinuesBetweenItsViewers(t *testing.T) {
	var c clock
	relay, err := lttnglive.NewRelay([]*lttnglive.Recording{recording()}, lttnglive.RelayOptions{Clock: c.read})
	require.NoError(t, err)
	_, a, _ := attachMade(t, relay, lttnglive.SeekBeginning)
	require.NoError(t, a.Detach(t.Context()))
	c.set(3)
	_, a, _ = attachMade(t, relay, lttnglive.SeekLast)
	index, err := a.NextIndex(t.Context(), 11)
	require.NoError(t, err)
	assert.Equal(t, lttnglive.IndexInactive, index.Status, "the first packet existed before")
	assert.Equal(t, uint64(400), index.TimestampEnd)
	reply, err := a.Metadata(t.Context(), 10, nil)
	require.NoError(t, err)
	assert.Equal(t, "first, ", string(reply.Data), "metadata is read from its beginning")
	require.NoError(t, a.Detach(t.Context()))
	_, a, _ = attachMade(t, relay, lttnglive.SeekBeginning)
	index, err = a.NextIndex(t.Context(), 11)
	require.NoError(t, err)
	assert.Equal(t, lttnglive.IndexOK, index.Status)
}

func TestASessionThatRestartsForEachViewer(t *testing.T) {
	relay, err := lttnglive.NewRelay([]*lttnglive.Recording{recording()}, lttnglive.RelayOptions{Restart: true})
	require.NoError(t, err)
	var first contents
	for range 3 {
		v, err := lttnglive.Connect(t.Context(), pipe(t, relay, nil), lttnglive.ViewerOptions{})
		require.NoError(t, err)
		read := readAll(t, v, 1, lttnglive.SeekBeginning)
		if first == nil {
			first = read
		}
		assert.Equal(t, first, read)
	}
	assert.Equal(t, contents{
		"ust/metadata": []byte("first, second"), "ust/ch_0": []byte("packet-0packet-1"), "ust/pid/ch_0": []byte("packet-0"),
	}, first)
}

// The end of a viewer's connection detaches its session.
func TestAClosedConnectionDetaches(t *testing.T) {
	relay, err := lttnglive.NewRelay([]*lttnglive.Recording{recording()}, lttnglive.RelayOptions{Restart: true})
	require.NoError(t, err)
	served := make(chan error, 1)
	conn := pipe(t, relay, func(err error) { served <- err })
	v, err := lttnglive.Connect(t.Context(), conn, lttnglive.ViewerOptions{})
	require.NoError(t, err)
	_, _, err = v.Attach(t.Context(), 1, lttnglive.SeekBeginning)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	require.NoError(t, <-served)
	attachMade(t, relay, lttnglive.SeekBeginning)
}

func TestSessionsThatAViewerCannotAttach(t *testing.T) {
	notLive, newFormat := recording(), recording()
	notLive.Session.LiveTimer, notLive.Streams = 0, nil
	newFormat.Session.ID, newFormat.Session.Format = 2, lttnglive.TraceFormatCTF2
	relay, err := lttnglive.NewRelay([]*lttnglive.Recording{notLive, newFormat}, lttnglive.RelayOptions{})
	require.NoError(t, err)
	for minor, listed := range map[uint32]int{14: 1, 15: 2} {
		v, err := lttnglive.Connect(t.Context(), pipe(t, relay, nil), lttnglive.ViewerOptions{Minor: minor})
		require.NoError(t, err)
		sessions, err := v.Sessions(t.Context())
		require.NoError(t, err)
		assert.Len(t, sessions, listed, "minor version %d", minor)
		var status *lttnglive.StatusError
		_, _, err = v.Attach(t.Context(), 1, lttnglive.SeekBeginning)
		require.ErrorAs(t, err, &status)
		assert.Equal(t, lttnglive.AttachNotLive, status.Status)
		if minor < 15 {
			_, _, err = v.Attach(t.Context(), 2, lttnglive.SeekBeginning)
			require.ErrorAs(t, err, &status)
			assert.Equal(t, lttnglive.AttachUnknown, status.Status)
		}
	}
}

func TestRecordingsThatCannotBeServed(t *testing.T) {
	cases := []struct {
		name   string
		change func(r *lttnglive.Recording)
		err    string
	}{
		{"a host that is too long", func(r *lttnglive.Recording) { r.Session.Host = strings.Repeat("h", 64) }, "session 1: expected the name of the host of at most 63 bytes without NUL, got "},
		{"a name with a NUL", func(r *lttnglive.Recording) { r.Session.Name = "a\x00b" }, "session 1: expected the name of the session of at most 254 bytes without NUL, got "},
		{"a timer of two hours", func(r *lttnglive.Recording) { r.Session.LiveTimer = 2 * time.Hour }, "session 1: expected a live timer from 0 to 1h11m34.967295s, got 2h0m0s"},
		{"streams out of order", func(r *lttnglive.Recording) { r.Streams[1].At = seconds(11) }, "session 1: expected stream 2 at the time of the previous one, 11s, or later, got 10s"},
		{"a path that is too long", func(r *lttnglive.Recording) { r.Streams[1].Path = strings.Repeat("p", 4096) }, "session 1: stream 11: expected the path of at most 4095 bytes without NUL, got "},
		{"a channel that is too long", func(r *lttnglive.Recording) { r.Streams[1].Channel = strings.Repeat("c", 255) }, "session 1: stream 11: expected the channel of at most 254 bytes without NUL, got "},
		{"metadata in a stream of packets", func(r *lttnglive.Recording) { r.Streams[1].Pieces = r.Streams[0].Pieces }, "session 1: stream 11: expected no metadata in a stream of packets, got 2 pieces"},
		{"packets in a stream of metadata", func(r *lttnglive.Recording) { r.Streams[0].Steps = r.Streams[1].Steps }, "session 1: stream 10: expected no steps in a stream of metadata, got 5"},
		{"pieces out of order", func(r *lttnglive.Recording) { r.Streams[0].Pieces[0].At = seconds(5) }, "session 1: stream 10: expected piece 1 at the time of the previous one, 5s, or later, got 4s"},
		{"a step after the end", func(r *lttnglive.Recording) { r.Streams[1].End = seconds(6) }, "session 1: stream 11: expected every step before the end at 6s, got one at 7s"},
		{"a step that is a hang-up", func(r *lttnglive.Recording) { r.Streams[1].Steps[1].Index.Status = lttnglive.IndexHangUp }, "session 1: stream 11: step 1: expected status OK or inactive, got hang-up"},
		{"a packet without size", func(r *lttnglive.Recording) { r.Streams[1].Steps[0].Index.PacketSize = 0 }, "session 1: stream 11: step 0: byte 8: expected a packet of whole bytes, got 0 bits"},
		{"packets without bytes", func(r *lttnglive.Recording) { r.Streams[1].Packets = nil }, "session 1: stream 11: step 0: expected a reader of packets, got none"},
		{"a stream twice", func(r *lttnglive.Recording) { r.Streams[3].ID = 11 }, "session 1: expected one stream 11, got a second"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := recording()
			c.change(r)
			_, err := lttnglive.NewRelay([]*lttnglive.Recording{r}, lttnglive.RelayOptions{})
			assert.ErrorContains(t, err, c.err)
		})
	}
	_, err := lttnglive.NewRelay([]*lttnglive.Recording{recording(), recording()}, lttnglive.RelayOptions{})
	assert.EqualError(t, err, "expected one session 1, got a second")
	_, err = lttnglive.NewRelay(nil, lttnglive.RelayOptions{Minor: 16})
	assert.EqualError(t, err, "expected a minor version from 4 to 15 to announce, got 16")
}

// shortReader has fewer bytes than its indexes.
type shortReader struct{}

func (shortReader) ReadAt([]byte, int64) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestAPacketThatCannotBeReadIsAnError(t *testing.T) {
	r := recording()
	r.Streams[1].Packets = shortReader{}
	relay, err := lttnglive.NewRelay([]*lttnglive.Recording{r}, lttnglive.RelayOptions{})
	require.NoError(t, err)
	_, a, _ := attachMade(t, relay, lttnglive.SeekBeginning)
	_, err = a.NextIndex(t.Context(), 11)
	require.NoError(t, err)
	_, err = a.Packet(t.Context(), 11, 0, 8, nil)
	var status *lttnglive.StatusError
	require.ErrorAs(t, err, &status)
	assert.Equal(t, lttnglive.PacketError, status.Status)
}

// requests returns the bytes of requests.
func requests(all ...lttnglive.Request) []byte {
	var b []byte
	for _, r := range all {
		b = lttnglive.AppendRequest(b, r)
	}
	return b
}

var connect = lttnglive.ConnectRequest{Version: lttnglive.Version{Major: 2, Minor: 4}, Type: lttnglive.ConnectionCommand}

func TestViewersThatBreakTheProtocol(t *testing.T) {
	otherMajor, notification := connect, connect
	otherMajor.Version.Major, notification.Type = 3, lttnglive.ConnectionNotification
	cases := []struct {
		name  string
		send  []byte
		reply []byte // the last bytes of all replies
		err   string
	}{
		{"a command before connect", requests(lttnglive.ListSessionsRequest{}), nil, "viewer pipe: list sessions: byte 8: expected connect as the first command, got list sessions"},
		{"another major version", requests(otherMajor), nil, "viewer pipe: connect: byte 24: expected major version 2, got 3"},
		{"another type of connection", requests(notification), nil, "viewer pipe: connect: byte 32: expected a connection of type 1, got 2"},
		{"an unknown command", append(requests(connect), "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x63\x00\x00\x00\x00"...), be32(11), "viewer pipe: byte 8: expected a command from 1 to 9, got 99"},
		{"silence inside a header", requests(connect)[:5], nil, "viewer pipe: byte 5 of the request: expected 11 more bytes, got: time ran out"},
		{"silence inside a payload", requests(connect)[:20], nil, "viewer pipe: byte 20 of the request: expected 16 more bytes, got: time ran out"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				relay, err := lttnglive.NewRelay([]*lttnglive.Recording{recording()}, lttnglive.RelayOptions{})
				require.NoError(t, err)
				served := make(chan error, 1)
				conn := pipe(t, relay, func(err error) { served <- err })
				go conn.Write(c.send) // the relay may read only a part of it
				got, err := io.ReadAll(conn)
				require.NoError(t, err)
				assert.True(t, bytes.HasSuffix(got, c.reply))
				assert.EqualError(t, <-served, c.err)
			})
		})
	}
}

func TestAViewerThatSendsARequestByteByByteIsDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		relay, err := lttnglive.NewRelay(nil, lttnglive.RelayOptions{})
		require.NoError(t, err)
		served := make(chan error, 1)
		conn := pipe(t, relay, func(err error) { served <- err })
		for _, b := range requests(connect) {
			if _, err := conn.Write([]byte{b}); err != nil {
				break
			}
			time.Sleep(time.Second) // in the test's fake time
		}
		require.ErrorIs(t, <-served, lttnglive.ErrTimeout)
	})
}

func TestAViewerThatClosesInARequest(t *testing.T) {
	relay, err := lttnglive.NewRelay(nil, lttnglive.RelayOptions{})
	require.NoError(t, err)
	served := make(chan error, 1)
	conn := pipe(t, relay, func(err error) { served <- err })
	_, err = conn.Write(requests(connect)[:30])
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	require.ErrorIs(t, <-served, lttnglive.ErrClosed)
}

func TestAViewerThatReadsNoReplyIsDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		relay, err := lttnglive.NewRelay(nil, lttnglive.RelayOptions{})
		require.NoError(t, err)
		served := make(chan error, 1)
		conn := pipe(t, relay, func(err error) { served <- err })
		_, err = conn.Write(requests(connect))
		require.NoError(t, err)
		err = <-served
		require.ErrorIs(t, err, lttnglive.ErrTimeout)
		assert.EqualError(t, err, "viewer pipe: connect: byte 0 of the reply: expected 20 more bytes, got: time ran out")
	})
}

// There is no time limit between two requests. The end of the context ends the wait, with its cause.
func TestServingEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		relay, err := lttnglive.NewRelay(nil, lttnglive.RelayOptions{})
		require.NoError(t, err)
		conn, other := net.Pipe()
		defer conn.Close()
		defer other.Close()
		cause := errors.New("shutting down")
		ctx, cancel := context.WithCancelCause(t.Context())
		served := make(chan error, 1)
		go func() { served <- relay.Serve(ctx, other) }()
		v, err := lttnglive.Connect(t.Context(), conn, lttnglive.ViewerOptions{})
		require.NoError(t, err)
		time.Sleep(time.Hour) // in the test's fake time
		_, err = v.Sessions(t.Context())
		require.NoError(t, err)
		cancel(cause)
		require.ErrorIs(t, <-served, cause)
	})
}

func TestCommandsWithoutTheirSession(t *testing.T) {
	relay, err := lttnglive.NewRelay([]*lttnglive.Recording{recording()}, lttnglive.RelayOptions{Restart: true})
	require.NoError(t, err)
	conn := pipe(t, relay, nil)
	ask := func(r lttnglive.Request) lttnglive.Reply {
		t.Helper()
		_, err := conn.Write(requests(r))
		require.NoError(t, err)
		var got []byte
		for {
			reply, n, err := lttnglive.DecodeReply(r, 4, lttnglive.Limits{}, got)
			require.NoError(t, err)
			if n > 0 {
				return reply
			}
			b := make([]byte, 1<<16)
			n, err = conn.Read(b)
			require.NoError(t, err)
			got = append(got, b[:n]...)
		}
	}
	ask(connect)
	attach := lttnglive.AttachSessionRequest{Session: 1, Seek: lttnglive.SeekBeginning}
	assert.Equal(t, lttnglive.AttachSessionReply{Status: lttnglive.AttachNoSession}, ask(attach))
	assert.Equal(t, lttnglive.DetachSessionReply{Status: lttnglive.DetachError}, ask(lttnglive.DetachSessionRequest{Session: 1}))
	assert.Equal(t, lttnglive.CreateSessionReply{Status: lttnglive.CreateSessionOK}, ask(lttnglive.CreateSessionRequest{}))
	assert.Equal(t, lttnglive.DetachSessionReply{Status: lttnglive.DetachError}, ask(lttnglive.DetachSessionRequest{Session: 1}))
	assert.Equal(t, lttnglive.DetachSessionReply{Status: lttnglive.DetachUnknown}, ask(lttnglive.DetachSessionRequest{Session: 2}))
	assert.Equal(t, lttnglive.NewStreamsReply{Status: lttnglive.NewStreamsError}, ask(lttnglive.GetNewStreamsRequest{Session: 1}))
	assert.Equal(t, lttnglive.Index{Status: lttnglive.IndexError}, ask(lttnglive.GetNextIndexRequest{Stream: 11}))
	assert.Equal(t, lttnglive.AttachOK, ask(attach).(lttnglive.AttachSessionReply).Status)
	assert.Equal(t, lttnglive.AttachAlready, ask(attach).(lttnglive.AttachSessionReply).Status)
	// No packet was sent yet, so none has these bytes, even if the sums overflow.
	for _, r := range []lttnglive.GetPacketRequest{{Stream: 11, Length: 8}, {Stream: 11, Offset: math.MaxUint64, Length: 8}, {Stream: 11, Length: math.MaxUint32}} {
		assert.Equal(t, lttnglive.PacketError, ask(r).(lttnglive.PacketReply).Status)
	}
}

func TestPromisesOfAQuietStream(t *testing.T) {
	cycles := func(at time.Duration) uint64 { return uint64(at / time.Second * 100) }
	s := lttnglive.RecordedStream{
		At:  seconds(1),
		End: seconds(9),
		Steps: []lttnglive.Step{
			packetStep(2, 0, 150, 200), // at the time of a timer: no promise before it
			packetStep(6, 8, 450, 600), // begins at 450
		},
	}
	s.AddPromises(time.Second, cycles)
	type step struct {
		at     time.Duration
		status lttnglive.IndexStatus
		until  uint64
	}
	var got []step
	for _, s := range s.Steps {
		got = append(got, step{s.At, s.Index.Status, s.Index.TimestampEnd})
	}
	assert.Equal(t, []step{
		{seconds(2), lttnglive.IndexOK, 200},
		{seconds(3), lttnglive.IndexInactive, 300},
		{seconds(4), lttnglive.IndexInactive, 400},
		{seconds(5), lttnglive.IndexInactive, 450},
		{seconds(6), lttnglive.IndexOK, 600},
		{seconds(7), lttnglive.IndexInactive, 700},
		{seconds(8), lttnglive.IndexInactive, 800},
	}, got)

	silent := lttnglive.RecordedStream{At: seconds(1), End: lttnglive.Never}
	silent.AddPromises(time.Second, cycles)
	assert.Empty(t, silent.Steps, "of a stream without end and steps")
	s = lttnglive.RecordedStream{End: seconds(9)}
	s.AddPromises(0, cycles)
	assert.Empty(t, s.Steps, "without a timer")
}
