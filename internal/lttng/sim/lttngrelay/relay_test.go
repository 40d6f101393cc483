// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngrelay_test

import (
	"context"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/lttng/sim/lttngrelay"
	"github.com/callbraid/callbraid/internal/testkit/lttngdata"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// traceFolder returns a directory with the CTF trace of a capture.
func traceFolder(t *testing.T, name string) string {
	t.Helper()
	trace, err := fs.Sub(lttngdata.OpenCapture(t, name), "ctf")
	require.NoError(t, err)
	root := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.CopyFS(root, trace))
	return root
}

// open opens a source, which is closed at the end of the test.
func open(t *testing.T, path string) *lttngrelay.Source {
	t.Helper()
	source, err := lttngrelay.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, source.Close()) })
	return source
}

// relay is a running server.
type relay struct {
	*lttngrelay.Server
	t       *testing.T
	address string
	stop    context.CancelFunc
	ended   chan error
}

// serve serves a source until the end of the test or of Serve.
func serve(t *testing.T, source *lttngrelay.Source, o lttngrelay.Options) *relay {
	t.Helper()
	server, err := lttngrelay.NewServer(source, o)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	r := &relay{Server: server, t: t, address: listener.Addr().String(), stop: cancel, ended: make(chan error, 1)}
	go func() { r.ended <- server.Serve(ctx, listener) }()
	t.Cleanup(cancel)
	return r
}

// wait waits for the end of Serve.
func (r *relay) wait() {
	r.t.Helper()
	select {
	case err := <-r.ended:
		require.NoError(r.t, err)
	case <-time.After(time.Minute):
		r.t.Fatal("the server has not ended after a minute")
	}
}

// viewing is a viewer with its received data.
type viewing struct {
	t        *testing.T
	conn     net.Conn
	session  lttnglive.Session
	attached *lttnglive.Attachment
	streams  []lttnglive.Stream // of packets, without those that have ended
	metadata map[uint64]uint64  // streams by trace
	traces   map[uint64]*ctf.Trace
	readers  map[uint64]*ctf.Reader
	packets  map[string][]string // by channel
	told     int                 // streams, of any kind
	events   uint64
	promises int
	losses   []ctf.Loss
}

// view attaches the only session.
func view(t *testing.T, address string, o lttnglive.ViewerOptions) *viewing {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	viewer, err := lttnglive.Connect(t.Context(), conn, o)
	require.NoError(t, err)
	sessions, err := viewer.Sessions(t.Context())
	require.NoError(t, err)
	require.Len(t, sessions, 1)
	attached, streams, err := viewer.Attach(t.Context(), sessions[0].ID, lttnglive.SeekBeginning)
	require.NoError(t, err)
	v := &viewing{
		t: t, conn: conn, session: sessions[0], attached: attached, metadata: map[uint64]uint64{}, traces: map[uint64]*ctf.Trace{},
		readers: map[uint64]*ctf.Reader{}, packets: map[string][]string{},
	}
	v.add(streams)
	return v
}

func (v *viewing) add(streams []lttnglive.Stream) {
	for _, s := range streams {
		v.told++
		if s.Metadata {
			v.metadata[s.TraceID] = s.ID
			v.traces[s.TraceID] = ctf.NewTrace()
			continue
		}
		v.streams = append(v.streams, s)
	}
}

// read reads everything until the session is closed, or returns the first error.
func (v *viewing) read() error {
	for {
		streams := v.streams
		v.streams = nil
		for _, s := range streams {
			goes, err := v.next(s)
			if err != nil {
				return err
			}
			if goes {
				v.streams = append(v.streams, s)
			}
		}
		reply, err := v.attached.NewStreams(v.t.Context())
		if err != nil || reply.Status == lttnglive.NewStreamsHangUp {
			return err
		}
		v.add(reply.Streams)
	}
}

// next reads the next packet of a stream. It returns false when the stream has ended.
func (v *viewing) next(s lttnglive.Stream) (bool, error) {
	index, err := v.attached.NextIndex(v.t.Context(), s.ID)
	if err != nil || index.Status == lttnglive.IndexHangUp {
		return false, err
	}
	if index.Flags.Has(lttnglive.FlagNewMetadata) {
		reply, err := v.attached.Metadata(v.t.Context(), v.metadata[s.TraceID], nil)
		if err != nil {
			return false, err
		}
		if reply.Status == lttnglive.MetadataOK {
			require.NoError(v.t, v.traces[s.TraceID].Append(reply.Data))
		}
	}
	switch index.Status {
	case lttnglive.IndexInactive:
		v.promises++
	case lttnglive.IndexOK:
		reply, err := v.attached.Packet(v.t.Context(), s.ID, index.Offset, index.ContentLength(), nil)
		if err != nil {
			return false, err
		}
		v.decode(s, reply.Data)
	}
	return true, nil
}

func (v *viewing) decode(s lttnglive.Stream, packet []byte) {
	v.packets[s.Channel] = append(v.packets[s.Channel], string(packet))
	r := v.readers[s.ID]
	if r == nil {
		r = ctf.NewReader(v.traces[s.TraceID])
		v.readers[s.ID] = r
	}
	require.NoError(v.t, r.Begin(packet))
	v.losses = append(v.losses, r.Losses...)
	for r.Next() {
		v.events++
	}
	require.NoError(v.t, r.Err())
}
