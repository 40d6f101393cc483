// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngrelay_test

import (
	"archive/zip"
	"io"
	"os"
	"path"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/lttng/sim/capture"
	"github.com/callbraid/callbraid/internal/lttng/sim/lttngrelay"
	"github.com/callbraid/callbraid/internal/testkit/lttngdata"
)

// cutCapture returns a capture that ends before the first exchange for which last returns true.
func cutCapture(t *testing.T, name string, last func(capture.Exchange) bool) string {
	t.Helper()
	whole, err := capture.Open(lttngdata.CaptureFile(t, name))
	require.NoError(t, err)
	sizes := map[string]int{}
	for _, e := range whole.Exchanges {
		if last(e) {
			sizes["viewer-to-relay.bin"], sizes["relay-to-viewer.bin"] = e.RequestOffset, e.ReplyOffset
			break
		}
	}
	require.NotEmpty(t, sizes)
	from, err := zip.OpenReader(lttngdata.CaptureFile(t, name))
	require.NoError(t, err)
	defer from.Close()
	file, err := os.Create(filepath.Join(t.TempDir(), name+".zip"))
	require.NoError(t, err)
	to := zip.NewWriter(file)
	for _, f := range from.File {
		base := path.Base(f.Name)
		if base != "times.tsv" && sizes[base] == 0 {
			continue
		}
		r, err := f.Open()
		require.NoError(t, err)
		content, err := io.ReadAll(r)
		require.NoError(t, err)
		if n := sizes[base]; n > 0 {
			content = content[:n]
		}
		w, err := to.Create(base)
		require.NoError(t, err)
		_, err = w.Write(content)
		require.NoError(t, err)
	}
	require.NoError(t, to.Close())
	require.NoError(t, file.Close())
	return file.Name()
}

func TestACaptureEndsWithItsViewer(t *testing.T) {
	packets := 0
	path := cutCapture(t, "cyg1", func(e capture.Exchange) bool {
		if e.Request.Command() == lttnglive.CommandGetPacket {
			packets++
		}
		return packets > 5 && e.Request.Command() == lttnglive.CommandGetNextIndex
	})
	source := open(t, path)
	assert.EqualValues(t, 6, source.Packets)
	assert.Less(t, source.Recordings[0].End, lttnglive.Never)
	r := serve(t, source, lttngrelay.Options{})
	v := view(t, r.address, lttnglive.ViewerOptions{})
	require.NoError(t, v.read())
	assert.Equal(t, source.Events, v.events)
	require.NoError(t, v.conn.Close())
	r.wait()
}

func TestACaptureWithoutPacketsIsAnError(t *testing.T) {
	for _, command := range []lttnglive.Command{lttnglive.CommandAttachSession, lttnglive.CommandGetMetadata} {
		path := cutCapture(t, "cygok", func(e capture.Exchange) bool { return e.Request.Command() == command })
		_, err := lttngrelay.Open(path)
		assert.ErrorContains(t, err, "expected a viewer that reads packets, got none")
	}
}

func TestAPartOfAPacketIsNotCounted(t *testing.T) {
	r := serve(t, open(t, lttngdata.CaptureFile(t, "cygok")), lttngrelay.Options{Restart: true})
	v := view(t, r.address, lttnglive.ViewerOptions{})
	reply, err := v.attached.NewStreams(t.Context())
	require.NoError(t, err)
	v.add(reply.Streams)
	for {
		index, err := v.attached.NextIndex(t.Context(), v.streams[0].ID)
		require.NoError(t, err)
		if index.Status != lttnglive.IndexOK {
			continue
		}
		_, err = v.attached.Packet(t.Context(), v.streams[0].ID, index.Offset+8, 8, nil)
		require.NoError(t, err)
		break
	}
	stats := r.Stats()
	assert.EqualValues(t, 8, stats.Bytes)
	assert.Zero(t, stats.Packets)
	assert.Zero(t, stats.Events)
	r.stop()
	r.wait()
}
