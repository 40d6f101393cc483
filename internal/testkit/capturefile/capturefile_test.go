// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package capturefile

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// zipOf returns a zip file of alternating names and contents. A name that ends in a slash is a folder.
func zipOf(t *testing.T, namesAndContents ...string) *bytes.Reader {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(namesAndContents); i += 2 {
		f, err := w.Create(namesAndContents[i])
		require.NoError(t, err)
		_, err = io.WriteString(f, namesAndContents[i+1])
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return bytes.NewReader(b.Bytes())
}

func isBin(name string) bool { return strings.HasSuffix(name, ".bin") }

func TestWantedFilesAreUnpackedByTheirNameWithoutFolder(t *testing.T) {
	z := zipOf(t, "x/folder.bin/", "", "x/a.bin", "first", "b.bin", "", "x/c.txt", "not wanted")
	files, err := Unpack(z, z.Size(), Limits{File: 10, All: 20}, isBin)
	require.NoError(t, err)
	assert.Equal(t, map[string][]byte{"a.bin": []byte("first"), "b.bin": {}}, files)
}

func TestInvalidZipFilesAreErrors(t *testing.T) {
	limits := Limits{File: 5, All: 8}
	cases := map[string]struct {
		file *bytes.Reader
		want string
	}{
		"no zip file":              {bytes.NewReader([]byte("text")), "expected a zip file: "},
		"a file twice":             {zipOf(t, "x/a.bin", "", "y/a.bin", ""), "expected one file a.bin, got a second: y/a.bin"},
		"a file that is too large": {zipOf(t, "x/a.bin", "123456"), "x/a.bin: expected at most 5 bytes, got more"},
		"files that are too large": {zipOf(t, "a.bin", "12345", "x/b.bin", "1234"), "x/b.bin: expected at most 3 bytes, got more"},
		"a damaged file":           {damaged(t), "a.bin: zip: checksum error"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Unpack(c.file, c.file.Size(), limits, isBin)
			assert.ErrorContains(t, err, c.want)
		})
	}
	within := zipOf(t, "a.bin", "12345", "b.bin", "123", "c.txt", "this one does not count")
	_, err := Unpack(within, within.Size(), limits, isBin)
	assert.NoError(t, err)
}

// damaged returns a zip file whose only file was changed after packing.
func damaged(t *testing.T) *bytes.Reader {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.CreateHeader(&zip.FileHeader{Name: "a.bin", Method: zip.Store})
	require.NoError(t, err)
	_, err = io.WriteString(f, "right")
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return bytes.NewReader(bytes.Replace(b.Bytes(), []byte("right"), []byte("wrong"), 1))
}

func TestErrorsOfOpenNameTheFile(t *testing.T) {
	wrong := errors.New("wrong")
	failing := func(io.ReaderAt, int64) (*string, error) { return nil, wrong }
	name := filepath.Join(t.TempDir(), "x.zip")
	_, err := Open(name, failing)
	assert.ErrorIs(t, err, os.ErrNotExist)
	assert.ErrorContains(t, err, "open capture: ")
	require.NoError(t, os.WriteFile(name, []byte("content"), 0o600))
	_, err = Open(name, failing)
	assert.ErrorIs(t, err, wrong)
	assert.ErrorContains(t, err, "capture "+name)
	got, err := Open(name, func(r io.ReaderAt, size int64) (*string, error) {
		b := make([]byte, size)
		_, err := r.ReadAt(b, 0)
		text := string(b)
		return &text, err
	})
	require.NoError(t, err)
	assert.Equal(t, "content", *got)
}
