// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"archive/zip"
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOpenTheCaptures(t *testing.T) {
	cases := []struct {
		name     string
		control  int
		data     []int
		rows     int
		commands []string
		last     time.Duration
	}{
		{"shop", 1388, []int{56289, 98723}, 30, nil, 1271145 * time.Microsecond},
		{"suspend", 1245, []int{397048, 370427}, 131, []string{"suspend", "unsuspend", "suspend", "unsuspend"}, 3088220 * time.Microsecond},
		{"startsuspended", 1227, []int{244221, 225845}, 82, []string{"unsuspend"}, 2435500 * time.Microsecond},
		{"maven", 116899, []int{3442210, 3942951, 7052100}, 2911, nil, 2471117 * time.Microsecond},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := Open("../../../../testdata/bytefrog/" + c.name + ".zip")
			require.NoError(t, err)
			assert.Len(t, got.Control, c.control)
			assert.Len(t, got.Configuration, map[bool]int{true: 350, false: 356}[c.name == "maven"])
			var sizes []int
			for _, data := range got.Data {
				sizes = append(sizes, len(data))
			}
			assert.Equal(t, c.data, sizes)
			assert.Len(t, got.Index, c.rows)
			assert.Equal(t, c.last, got.Index[len(got.Index)-1].Time)

			var commands []string
			for _, a := range got.Index {
				if command, ok := a.Command(); ok {
					commands = append(commands, command)
				}
			}
			assert.Equal(t, c.commands, commands)
		})
	}
}

func TestTheFirstRowOfShop(t *testing.T) {
	c, err := Open("../../../../testdata/bytefrog/shop.zip")
	require.NoError(t, err)
	assert.Equal(t, Arrival{Time: 653052 * time.Microsecond, File: "control.bin", Kind: In, Offset: 0, Length: 2}, c.Index[0])
}

// files is the content of a capture, by name.
type files map[string]string

// with returns the files with one added or replaced file.
func (f files) with(name, content string) files {
	all := files{name: content}
	for n, c := range f {
		if _, other := all[n]; !other {
			all[n] = c
		}
	}
	return all
}

func (f files) without(name string) files {
	all := f.with(name, "")
	delete(all, name)
	return all
}

func (f files) zip(tb testing.TB) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, content := range f {
		part, err := w.Create(name)
		require.NoError(tb, err)
		_, err = part.Write([]byte(content))
		require.NoError(tb, err)
	}
	require.NoError(tb, w.Close())
	return b.Bytes()
}

func read(b []byte) (*Capture, error) { return Read(bytes.NewReader(b), int64(len(b))) }

var small = files{
	"x/control.bin":       "\x00\x01",
	"x/data-0.bin":        "\x1E\x01",
	"x/data-1.bin":        "\x1E\x01ab",
	"x/configuration.ser": "ser",
	"x/index.json": `[[0, "control.bin", "in", 0, 2], [0.5, "data-0.bin", "in", 0, 2], [0.5, "data-1.bin", "in", 0, 2],
		[0.6, "control.bin", "out:suspend", 0, 1], [1, "data-1.bin", "in", 2, 2], [2, "control.bin", "close", 2, 0]]`,
	"x/notes.txt": "anything",
}

func TestReadASmallCapture(t *testing.T) {
	got, err := read(small.zip(t))
	require.NoError(t, err)
	assert.Equal(t, &Capture{
		Control:       []byte{0, 1},
		Data:          [][]byte{{30, 1}, {30, 1, 'a', 'b'}},
		Configuration: []byte("ser"),
		Index: []Arrival{
			{0, "control.bin", "in", 0, 2},
			{500 * time.Millisecond, "data-0.bin", "in", 0, 2},
			{500 * time.Millisecond, "data-1.bin", "in", 0, 2},
			{600 * time.Millisecond, "control.bin", "out:suspend", 0, 1},
			{time.Second, "data-1.bin", "in", 2, 2},
			{2 * time.Second, "control.bin", "close", 2, 0},
		},
	}, got)
}

func TestACaptureWithoutOptionalFilesIsRead(t *testing.T) {
	got, err := read(small.without("x/index.json").without("x/configuration.ser").with("x/control.bin", "").zip(t))
	require.NoError(t, err)
	assert.Equal(t, &Capture{Control: []byte{}, Data: [][]byte{{30, 1}, {30, 1, 'a', 'b'}}}, got)

	got, err = read(files{"control.bin": "\x00\x01"}.zip(t))
	require.NoError(t, err)
	assert.Equal(t, &Capture{Control: []byte{0, 1}, Data: [][]byte{}}, got)
}

func TestInvalidCapturesAreRefused(t *testing.T) {
	index := func(text string) files { return small.with("x/index.json", text) }
	cases := []struct {
		name  string
		files files
		text  string
	}{
		{"no control connection", small.without("x/control.bin"), "expected a file control.bin, got none"},
		{"a data connection is missing", small.without("x/data-0.bin"), "expected a file data-0.bin, because there is a data-1.bin; got none"},
		{"too many data connections", small.with("x/data-1024.bin", ""), "expected at most 1024 data connections, got data-1024.bin"},
		{"an index that is not JSON", index("seconds"), "index.json: expected rows of [seconds, file, what, offset, length]: invalid character 's' looking for beginning of value"},
		{"a row that is too short", index(`[[0, "control.bin"]]`), "index.json: expected rows of [seconds, file, what, offset, length]: expected a row of 5 values, got 2"},
		{"a row that is too long", index(`[[0, "control.bin", "in", 0, 2, 3]]`), "index.json: expected rows of [seconds, file, what, offset, length]: expected a row of 5 values, got 6"},
		{"a time before the beginning", index(`[[-1, "control.bin", "in", 0, 2]]`), "index.json: expected rows of [seconds, file, what, offset, length]: expected a time in seconds, got -1"},
		{"a decreasing time", index(`[[2, "control.bin", "in", 0, 1], [1, "control.bin", "in", 1, 1]]`), "index.json: row 1: expected a time from 2s on, got 1s"},
		{"a missing file", index(`[[0, "data-2.bin", "in", 0, 2]]`), `index.json: row 0: expected a connection's file, got "data-2.bin"`},
		{"a file that is no connection", index(`[[0, "configuration.ser", "in", 0, 2]]`), `index.json: row 0: expected a connection's file, got "configuration.ser"`},
		{"an unknown kind of row", index(`[[0, "control.bin", "open", 0, 2]]`), `index.json: row 0: expected in, close or out:COMMAND, got "open"`},
		{"a piece beyond the end", index(`[[0, "control.bin", "in", 0, 3]]`), "index.json: row 0: expected a piece of control.bin from byte 0 within 2, got 3 bytes from 0"},
		{"a piece of negative length", index(`[[0, "control.bin", "in", 0, -1]]`), "index.json: row 0: expected a piece of control.bin from byte 0 within 2, got -1 bytes from 0"},
		{"a hole between pieces", index(`[[0, "control.bin", "in", 0, 1], [1, "control.bin", "in", 2, 0]]`), "index.json: row 1: expected a piece of control.bin from byte 1 within 2, got 0 bytes from 2"},
		{"an index that omits bytes", small.without("x/data-0.bin").without("x/data-1.bin").with("x/index.json", `[[0, "control.bin", "in", 0, 1]]`), "index.json: expected all 2 bytes of control.bin, got 1"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := read(c.files.zip(t))
			assert.EqualError(t, err, c.text)
			assert.Nil(t, got)
		})
	}
}

func TestADuplicateFileIsRefused(t *testing.T) {
	_, err := read(files{"a/control.bin": "", "b/control.bin": ""}.zip(t))
	assert.ErrorContains(t, err, "expected one file control.bin, got a second: ")
}

func TestAFileThatIsNoZipFileIsRefused(t *testing.T) {
	_, err := read([]byte("no zip file"))
	assert.ErrorContains(t, err, "expected a zip file: ")

	name := filepath.Join(t.TempDir(), "missing.zip")
	_, err = Open(name)
	assert.ErrorContains(t, err, "open capture: open "+name)
}

func FuzzParseIndex(f *testing.F) {
	f.Add([]byte(small["x/index.json"]))
	f.Add([]byte(`[[0.653052,"control.bin","in",0,2],[1e300,null,"close",0,-1]]`))
	content := map[string][]byte{controlFile: {0, 1}, "data-0.bin": {30, 1}, "data-1.bin": {30, 1, 2, 3}}
	f.Fuzz(func(t *testing.T, text []byte) {
		index, err := parseIndex(text)
		if err != nil || checkIndex(index, content) != nil {
			return
		}
		for i, a := range index {
			if a.Kind == In && a.Offset+a.Length > len(content[a.File]) {
				t.Fatalf("row %d: %+v", i, a)
			}
		}
	})
}
