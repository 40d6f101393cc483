// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngrelay_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/lttng/sim/lttngrelay"
	"github.com/callbraid/callbraid/internal/testkit/lttngdata"
)

// The figures of the captures are those of their README and of their viewer.
var captures = []struct {
	name            string
	events, packets uint64
}{
	{"jul1", 282, 9}, {"julctx", 18, 10}, {"cygok", 245, 6}, {"cyg1", 7886, 98}, {"tp1", 152, 13}, {"meta1", 656, 10},
}

// A capture and its CTF trace are served with the same packets.
func TestACaptureAndItsTraceHaveTheSamePackets(t *testing.T) {
	for _, c := range captures {
		t.Run(c.name, func(t *testing.T) {
			var first *viewing
			for _, path := range []string{lttngdata.CaptureFile(t, c.name), traceFolder(t, c.name)} {
				source := open(t, path)
				assert.Equal(t, c.events, source.Events)
				assert.Equal(t, c.packets, source.Packets)
				assert.Equal(t, 2, source.Streams)
				r := serve(t, source, lttngrelay.Options{})
				v := view(t, r.address, lttnglive.ViewerOptions{})
				require.NoError(t, v.read())
				require.NoError(t, v.conn.Close())
				r.wait()
				stats := r.Stats()
				assert.Equal(t, c.events, v.events)
				assert.Equal(t, c.events, stats.Events)
				assert.Equal(t, c.packets, stats.Packets)
				assert.Equal(t, source.Bytes, stats.Bytes)
				assert.Equal(t, 1, stats.Viewers)
				assert.Zero(t, stats.Broken)
				assert.Equal(t, c.name, v.session.Name)
				assert.Equal(t, "vm", v.session.Host)
				if first == nil {
					first = v
				}
				assert.Equal(t, first.packets, v.packets)
			}
		})
	}
}

// With a speed, a directory is served like a session that is being recorded: packets arrive over time, and quiet
// streams send promises.
func TestADirectoryIsServedLikeALiveSession(t *testing.T) {
	r := serve(t, open(t, traceFolder(t, "meta1")), lttngrelay.Options{Speed: 20})
	v := view(t, r.address, lttnglive.ViewerOptions{})
	require.NoError(t, v.read())
	assert.EqualValues(t, 656, v.events)
	assert.NotZero(t, v.promises)
	assert.Empty(t, v.losses)
}

func TestClearedPacketsAreMissing(t *testing.T) {
	source := open(t, lttngdata.CaptureFile(t, "cyg1"))
	assert.EqualValues(t, 20, source.Clear(10))
	assert.EqualValues(t, 78, source.Packets)
	r := serve(t, source, lttngrelay.Options{})
	v := view(t, r.address, lttnglive.ViewerOptions{})
	require.NoError(t, v.read())
	assert.Equal(t, source.Events, v.events)
	lost := uint64(0)
	for _, l := range v.losses {
		if l.Kind == ctf.LostPackets {
			lost += l.Count
		}
	}
	assert.EqualValues(t, 20, lost)
}

func TestASessionIsRenamed(t *testing.T) {
	source := open(t, lttngdata.CaptureFile(t, "jul1"))
	require.NoError(t, source.Name("", ""))
	require.NoError(t, source.Name("there", ""))
	require.NoError(t, source.Name("", "it"))
	r := serve(t, source, lttngrelay.Options{Minor: 4})
	v := view(t, r.address, lttnglive.ViewerOptions{})
	assert.Equal(t, "there/it", v.session.Host+"/"+v.session.Name)

	source.Recordings = append(source.Recordings, &lttnglive.Recording{})
	assert.ErrorContains(t, source.Name("", "it"), "expected one session to rename, got 2")
}

func TestInvalidSourcesAreErrors(t *testing.T) {
	folder := func(files map[string]string) string {
		root := t.TempDir()
		for name, content := range files {
			require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(content), 0o600))
		}
		return root
	}
	const text = "/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; packet.header := struct { integer { size = 32; } magic; }; };\n"
	const events = text + "stream { event.header := struct { integer { size = 8; } id; }; };\nevent { id = 0; name = e; fields := struct { string s; }; };\n"
	const stamped = text + "stream { packet.context := struct { integer { size = 8; } timestamp_begin; integer { size = 8; } timestamp_end; };" +
		" event.header := struct { integer { size = 8; } id; }; };\nevent { id = 0; name = e; fields := struct { string s; }; };\n"
	const magic = "\xc1\x1f\xfc\xc1"
	for want, path := range map[string]string{
		"no such file":                              filepath.Join(t.TempDir(), "nothing"),
		"expected a zip file":                       filepath.Join(folder(map[string]string{"f": "text"}), "f"),
		"expected a file metadata, found none":      folder(nil),
		"expected packets with times, found none":   folder(map[string]string{"metadata": text}),
		"metadata, line 1, column 30":               folder(map[string]string{"metadata": "/* CTF 1.8 */ trace { nothing; };"}),
		"expected magic":                            folder(map[string]string{"metadata": text, "stream": "not a packet"}),
		"with the times of its begin and end":       folder(map[string]string{"metadata": events, "stream": magic + "\x00text\x00"}),
		"stream: packet at byte 0: event at bit 48": folder(map[string]string{"metadata": stamped, "stream": magic + "\x01\x02\x00text"}),
	} {
		source, err := lttngrelay.Open(path)
		assert.ErrorContains(t, err, want)
		assert.Nil(t, source)
	}
}
