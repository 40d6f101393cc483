// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLinesAreAppendedToExistingOnes(t *testing.T) {
	path := someFile(t, `{"n":1}`+"\n")
	b := opened(t, path)
	require.NoError(t, b.Append([]byte(`{"n":2}`+"\n")))
	assert.Equal(t, []int{1, 2}, numbersIn(t, path), "a line is in the kernel when Append returns")
	assert.Empty(t, b.repaired)
	require.NoError(t, b.Close())
	require.NoError(t, b.Close())
	assert.ErrorIs(t, b.Append([]byte("x\n")), ErrClosed)
	assert.ErrorIs(t, newBed(t, path).Append([]byte("x\n")), ErrClosed, "it was not opened")
}

func TestAFailedWriteIsCutOff(t *testing.T) {
	for name, break_ := range map[string]func(*faults){
		"nothing was written":          func(f *faults) { f.write = func([]byte) int { return 0 } },
		"a part was written":           func(f *faults) { f.write = func([]byte) int { return 3 } },
		"all was written":              func(f *faults) { f.write = func(line []byte) int { return len(line) } },
		"it did not reach the disk":    func(f *faults) { f.sync = true },
		"the end could not be cut off": func(f *faults) { f.write, f.truncate = func([]byte) int { return 3 }, true },
		"all was written and stays":    func(f *faults) { f.write, f.truncate = func(line []byte) int { return len(line) }, true },
	} {
		t.Run(name, func(t *testing.T) {
			path := someFile(t, `{"n":1}`+"\n")
			b := opened(t, path, func(s *Settings) { s.Sync = true })
			break_(&b.faults)
			for range 3 {
				require.ErrorIs(t, b.Append([]byte(`{"n":2}`+"\n")), errDisk)
			}
			if !b.faults.truncate {
				assert.Equal(t, []int{1}, numbersIn(t, path))
			}
			b.faults = faults{}
			for n := 2; n < 4; n++ {
				require.NoError(t, b.Append([]byte(`{"n":`+string(rune('0'+n))+"}\n")))
			}
			assert.Equal(t, []int{1, 2, 3}, numbersIn(t, path))
		})
	}
}

func TestATornEndIsCutWhenTheFileIsClosed(t *testing.T) {
	path := someFile(t, "")
	b := opened(t, path)
	b.faults = faults{write: func([]byte) int { return 3 }, truncate: true}
	require.ErrorIs(t, b.Append([]byte(`{"n":2}`+"\n")), errDisk)
	assert.Equal(t, `{"n`, contentOf(t, path))
	b.faults = faults{}
	require.NoError(t, b.Close())
	assert.Empty(t, contentOf(t, path))
}

func TestASecondWriterIsRefused(t *testing.T) {
	path := someFile(t, "")
	b := opened(t, path)
	err := newBed(t, path).Open()
	require.ErrorContains(t, err, "another exporter or collector writes to "+path+": set path to another file")
	require.NoError(t, b.Close())
	require.NoError(t, newBed(t, path).Open(), "the lock ends with the file")
}

func TestAFileThatIsMovedOrDeletedHasASuccessor(t *testing.T) {
	for name, remove := range map[string]func(path string) error{
		"moved":    func(path string) error { return os.Rename(path, path+".1") },
		"deleted":  os.Remove,
		"replaced": func(path string) error { return os.Rename(someFile(t, ""), path) },
	} {
		t.Run(name, func(t *testing.T) {
			path := someFile(t, `{"n":1}`+"\n")
			b := opened(t, path)
			require.NoError(t, remove(path))
			require.NoError(t, b.Append([]byte(`{"n":2}`+"\n")))
			assert.Equal(t, []int{2}, numbersIn(t, path))
			assert.Equal(t, 1, b.replaced)
			assert.ErrorContains(t, newBed(t, path).Open(), "another exporter or collector", "the successor is locked")
		})
	}
}

func TestAFileThatAnotherProgramChangesEndsWithAWholeLine(t *testing.T) {
	path := someFile(t, `{"n":1}`+"\n")
	b := opened(t, path)
	for content, want := range map[string][]int{
		"":                            {2},
		`{"n":1}` + "\n" + `{"n":5`:   {1, 2},
		`{"n":7}` + "\n{\"n\":8}\n":   {7, 8, 2},
		`{"n":12345678901234567890}`:  {2},
		`{"n":1}` + "\n" + `{"n":12}`: {1, 2},
	} {
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		require.NoError(t, b.Append([]byte(`{"n":2}`+"\n")))
		assert.Equal(t, want, numbersIn(t, path), content)
	}
}

func TestNewFilesAndDirectoriesAreForTheirOwner(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "a", "b")
	path := filepath.Join(directory, "lines.json")
	assert.ErrorIs(t, newBed(t, path).Open(), os.ErrNotExist)
	b := opened(t, path, func(s *Settings) { s.CreateDirectory, s.Sync = true, true })
	require.NoError(t, b.Append([]byte(`{"n":2}`+"\n")))
	for path, want := range map[string]os.FileMode{path: 0o600, directory: 0o700, filepath.Dir(directory): 0o700} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, want, info.Mode().Perm(), path)
	}
}

func TestOnlyFilesAreWritten(t *testing.T) {
	assert.ErrorContains(t, newBed(t, os.DevNull).Open(), "is no regular file")
	assert.Error(t, newBed(t, t.TempDir()).Open())
}

func TestATornEndIsCutAtTheStart(t *testing.T) {
	long := strings.Repeat("x", 3*blockBytes)
	for _, test := range []struct{ name, whole, torn string }{
		{"nothing", "", ""},
		{"a whole line", `{"n":1}` + "\n", ""},
		{"a torn line", `{"n":1}` + "\n", `{"n"`},
		{"one torn line alone", "", `{"n":12`},
		{"the first byte of a line", "", `{`},
		{"a torn line of many blocks", `{"n":1}` + "\n", `{"n":` + long},
		{"a torn line of many blocks alone", "", `{"n":` + long},
		{"a torn line of just a block", `{"n":1}` + "\n", long[:blockBytes]},
		{"a torn line of a block and its line end", `{"n":1}` + "\n", long[:blockBytes-1]},
		{"zeros, as after the death of a machine", `{"n":1}` + "\n", strings.Repeat("\x00", 4096)},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := someFile(t, test.whole+test.torn)
			b := opened(t, path)
			assert.Equal(t, test.whole, contentOf(t, path))
			if test.torn == "" {
				assert.Empty(t, b.repaired)
			} else {
				assert.Equal(t, []int64{int64(len(test.whole)), int64(len(test.torn))}, b.repaired)
			}
		})
	}
}

func TestAFileOfAnotherProgramIsNotTouched(t *testing.T) {
	for _, content := range []string{"root:x:0:0\nbin", "{\n  \"name\": 1\n}", "\x00\x00\x01\x02proto", "\n", "{x", "{\"N\":1}\n"} {
		path := someFile(t, content)
		require.ErrorContains(t, newBed(t, path).Open(), "belongs to another program: expected a file that begins with "+start, content)
		assert.Equal(t, content, contentOf(t, path))
	}
}

func TestAnEndThatCannotBeCutAtTheStartIsAnError(t *testing.T) {
	path := someFile(t, `{"n":1}`+"\n{")
	b := newBed(t, path)
	b.faults.truncate = true
	require.ErrorContains(t, b.Open(), "at byte 8: the disk is broken")
	b.faults.truncate = false
	require.NoError(t, b.Open(), "the lock is free")
}
