// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func bounded(bytes int64, backups int) func(*Settings) {
	return func(s *Settings) { s.MaxBytes, s.MaxBackups, s.Sync = bytes, backups, true }
}

func numbered(n, padding int) []byte {
	return fmt.Appendf(nil, `{"n":%d,"p":"%s"}`+"\n", n, strings.Repeat("x", padding))
}

// names are those of the files in a directory, in their order.
func names(t testing.TB, directory string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(directory)
	require.NoError(t, err)
	for _, entry := range entries {
		all = append(all, entry.Name())
	}
	return all
}

func TestAFullFileIsRenamedAndTheOldestDeleted(t *testing.T) {
	path := someFile(t, "")
	b := opened(t, path, bounded(40, 2))
	b.now = clock("2026-01-02T03:04:05.678Z")
	for n := range 8 {
		require.NoError(t, b.Append(numbered(n, 1))) // 15 bytes: two in a file
	}
	// The clock stands still: names are still in order.
	assert.Equal(t, []string{"lines-2026-01-02T03-04-05.678.json", "lines-2026-01-02T03-04-05.679.json", "lines-2026-01-02T03-04-05.680.json"}, b.rotated)
	assert.Equal(t, []string{b.rotated[1], b.rotated[2], "lines.json"}, names(t, filepath.Dir(path)))
	directory := filepath.Dir(path)
	assert.Equal(t, []int{2, 3, 4, 5, 6, 7}, numbersIn(t, filepath.Join(directory, b.rotated[1]), filepath.Join(directory, b.rotated[2]), path))
	assert.ErrorContains(t, newBed(t, path).Open(), "another exporter or collector", "the new file is locked")
}

func TestALineThatIsLargerThanAFileHasOneForItself(t *testing.T) {
	path := someFile(t, "")
	b := opened(t, path, bounded(40, 9))
	for n, padding := range []int{1, 100, 1} {
		require.NoError(t, b.Append(numbered(n, padding)))
	}
	require.Len(t, b.rotated, 2)
	directory := filepath.Dir(path)
	for n, name := range append(b.rotated, "lines.json") {
		assert.Equal(t, []int{n}, numbersIn(t, filepath.Join(directory, name)))
	}
}

func TestOnlyBackupsOfTheFileAreDeleted(t *testing.T) {
	path := someFile(t, string(numbered(0, 30)))
	directory := filepath.Dir(path)
	others := []string{
		"lines-2025-01-01T00-00-00.json", "lines-2025-01-01T00-00-00.000.txt", "other-2025-01-01T00-00-00.000.json",
		"lines-2025-01-01T00-00-00.000-mine.json", "lines-yesterday-afternoon-at-4.json",
	}
	for _, name := range append(others, "lines-2025-01-01T00-00-00.000-size.json", "lines-2025-01-01T00-00-00.001.json") {
		require.NoError(t, os.WriteFile(filepath.Join(directory, name), nil, 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(directory, "lines-2024-01-01T00-00-00.000.json"), 0o700))
	b := opened(t, path, bounded(40, 1))
	require.NoError(t, b.Append(numbered(1, 30)))
	assert.ElementsMatch(t, append(others, "lines-2024-01-01T00-00-00.000.json", b.rotated[0], "lines.json"), names(t, directory))
}

func TestARotationThatFailsIsTriedAgain(t *testing.T) {
	path := someFile(t, string(numbered(0, 30)))
	b := opened(t, path, bounded(40, 1))
	b.now = clock("2026-01-02T03:04:05.678Z")
	inTheWay := filepath.Join(filepath.Dir(path), "lines-2026-01-02T03-04-05.678.json")
	require.NoError(t, os.MkdirAll(filepath.Join(inTheWay, "x"), 0o700))
	for range 2 {
		err := b.Append(numbered(1, 30))
		require.ErrorContains(t, err, "rotate: ")
		require.ErrorContains(t, err, inTheWay)
	}
	require.NoError(t, os.RemoveAll(inTheWay))
	require.NoError(t, b.Append(numbered(1, 30)))
	assert.Equal(t, []int{0, 1}, numbersIn(t, inTheWay, path))
}

func TestAFileThatCannotBeMadeAfterARotationIsMadeLater(t *testing.T) {
	path := someFile(t, string(numbered(0, 30)))
	b := opened(t, path, bounded(40, 1))
	open := b.openFile
	b.openFile = func(string, os.FileMode) (handle, error) { return nil, errDisk }
	for range 2 {
		require.ErrorIs(t, b.Append(numbered(1, 30)), errDisk)
	}
	b.openFile = open
	require.NoError(t, b.Append(numbered(1, 30)))
	assert.Equal(t, []int{0, 1}, numbersIn(t, filepath.Join(filepath.Dir(path), b.rotated[0]), path))
}

func TestAFileIsRotatedOnRequestUnlessItIsEmpty(t *testing.T) {
	path := someFile(t, "")
	b := opened(t, path)
	require.NoError(t, b.Rotate())
	assert.Zero(t, b.Size())
	require.NoError(t, b.Append(numbered(1, 100)))
	assert.NotZero(t, b.Size())
	require.NoError(t, b.Rotate())
	assert.Zero(t, b.Size())
	require.NoError(t, b.Append(numbered(2, 100)))
	assert.Equal(t, []int{2}, numbersIn(t, path))
	require.NoError(t, b.Close())
	assert.ErrorIs(t, b.Rotate(), ErrClosed)
}
