// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func totalSize(t testing.TB, directory string) (sum int64) {
	t.Helper()
	for _, name := range names(t, directory) {
		info, err := os.Stat(filepath.Join(directory, name))
		require.NoError(t, err)
		sum += info.Size()
	}
	return sum
}

func TestAllFilesTogetherAreWithinTheirBound(t *testing.T) {
	path := someFile(t, "")
	b := opened(t, path, bounded(100, 1000), func(s *Settings) { s.MaxTotalBytes = 250 })
	most := int64(0)
	for n := range 100 {
		require.NoError(t, b.Append(numbered(n, n%20)))
		most = max(most, totalSize(t, filepath.Dir(path)))
		require.LessOrEqual(t, most, int64(250))
	}
	assert.Greater(t, most, int64(200), "no more is deleted than necessary")
	assert.Contains(t, numbersIn(t, path), 99)
}

func TestTheBoundHoldsForFilesFromBefore(t *testing.T) {
	path := someFile(t, "")
	old := filepath.Join(filepath.Dir(path), "lines-2025-01-01T00-00-00.000.json")
	require.NoError(t, os.WriteFile(old, numbered(0, 100), 0o600))
	b := opened(t, path, bounded(100, 1000), func(s *Settings) { s.MaxTotalBytes = 200 })
	require.NoError(t, b.Append(numbered(1, 50)))
	assert.FileExists(t, old)
	require.NoError(t, b.Append(numbered(2, 20)))
	assert.NoFileExists(t, old)
}

func TestBackupsAreDeletedWhenTheyAreOld(t *testing.T) {
	path := someFile(t, "")
	b := opened(t, path, func(s *Settings) { s.MaxBackupAge = time.Minute })
	now := clock("2026-01-02T03:04:05.678Z")()
	b.now = func() time.Time { return now }
	for n := range 3 {
		require.NoError(t, b.Append(numbered(n, 1)))
		require.NoError(t, b.Rotate())
		now = now.Add(20 * time.Second)
	}
	require.NoError(t, b.Expire())
	assert.Len(t, names(t, filepath.Dir(path)), 3, "the first one is a minute old")
	now = now.Add(20 * time.Second)
	require.NoError(t, b.Append(numbered(3, 1)))
	assert.Equal(t, []string{b.rotated[2], "lines.json"}, names(t, filepath.Dir(path)))
	require.NoError(t, b.Close())
	assert.ErrorIs(t, b.Expire(), ErrClosed)
}

func TestFilesAreListedAndOpenedUpToTheirLastWholeRecord(t *testing.T) {
	path := someFile(t, "")
	none, err := List(path)
	require.NoError(t, err)
	assert.Empty(t, none, "the file is empty")
	b := opened(t, path)
	b.now = clock("2026-01-02T03:04:05.678Z")
	require.NoError(t, b.Append(numbered(1, 1)))
	require.NoError(t, b.Rotate())
	require.NoError(t, b.Append(numbered(2, 1)))
	require.NoError(t, b.Append([]byte(`{"n":3`))) // as a reader may see a record that is being written
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "secret.json"), nil, 0o600))

	all, err := List(path)
	require.NoError(t, err)
	require.Len(t, all, 2)
	assert.Equal(t, "lines.json", all[0].Name)
	assert.True(t, all[0].Current)
	assert.Equal(t, Listed{Name: "lines-2026-01-02T03-04-05.678.json", Size: 16, Until: b.now()}, all[1])

	for name, want := range map[string]string{all[0].Name: string(numbered(2, 1)), all[1].Name: string(numbered(1, 1))} {
		s, err := OpenListed(path, name, LastLineEnd)
		require.NoError(t, err)
		content, err := io.ReadAll(s)
		require.NoError(t, err)
		assert.Equal(t, want, string(content))
		assert.EqualValues(t, len(want), s.Listed.Size)
		require.NoError(t, s.Close())
	}
	for _, name := range []string{"secret.json", "../x", "", "lines-2026-01-02T03-04-05.679.json"} {
		_, err := OpenListed(path, name, LastLineEnd)
		require.ErrorIs(t, err, fs.ErrNotExist, "%q", name)
	}
	gone, err := List(filepath.Join(t.TempDir(), "none", "lines.json"))
	require.NoError(t, err)
	assert.Empty(t, gone)
}

func TestErrorsOfADirectoryNameTheRemedy(t *testing.T) {
	b := newBed(t, filepath.Join(t.TempDir(), "none", "lines.json"))
	require.ErrorContains(t, b.Open(), "or set create_directory to true")
}
