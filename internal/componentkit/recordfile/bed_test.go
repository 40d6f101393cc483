// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const start = `{"n":`

var (
	errDisk = errors.New("the disk is broken")
	errDead = errors.New("the process is dead")
)

// faults are the faults of a file.
type faults struct {
	// write, if it is not nil, is how many bytes of a line are written before an error.
	write    func(line []byte) int
	truncate bool
	sync     bool
	// dead: no operation has an effect any more, as after kill -9.
	dead bool
}

// faultyFile is an open file with faults.
type faultyFile struct {
	*os.File
	faults *faults
}

func (f faultyFile) Write(line []byte) (int, error) {
	if f.faults.dead {
		return 0, errDead
	}
	if f.faults.write == nil {
		return f.File.Write(line)
	}
	n, err := f.File.Write(line[:f.faults.write(line)])
	return n, errors.Join(err, errDisk)
}

func (f faultyFile) Truncate(size int64) error {
	if f.faults.dead {
		return errDead
	}
	if f.faults.truncate {
		return errDisk
	}
	return f.File.Truncate(size)
}

func (f faultyFile) Sync() error {
	if f.faults.dead {
		return errDead
	}
	if f.faults.sync {
		return errDisk
	}
	return f.File.Sync()
}

// bed is a file with its observations.
type bed struct {
	*File
	faults   faults
	repaired []int64 // offset and bytes of each
	rotated  []string
	replaced int
}

func newBed(t testing.TB, path string, changes ...func(*Settings)) *bed {
	t.Helper()
	settings := Settings{Path: path, FileMode: 0o600, DirectoryMode: 0o700, MaxBytes: 1 << 30, MaxBackups: 1000, Starts: []string{start}, LastEnd: LastLineEnd}
	for _, change := range changes {
		change(&settings)
	}
	b := &bed{}
	b.File = New(settings, Observer{
		Repaired: func(offset, bytes int64) { b.repaired = append(b.repaired, offset, bytes) },
		Rotated:  func(backup string) { b.rotated = append(b.rotated, filepath.Base(backup)) },
		Replaced: func() { b.replaced++ },
		Unlocked: func(err error) { t.Logf("no lock: %v", err) },
	})
	b.openFile = func(path string, mode fs.FileMode) (handle, error) {
		h, err := openFile(path, mode)
		if err != nil {
			return nil, err
		}
		return faultyFile{h.(*os.File), &b.faults}, nil
	}
	t.Cleanup(func() {
		b.faults = faults{}
		require.NoError(t, b.Close())
	})
	return b
}

func opened(t testing.TB, path string, changes ...func(*Settings)) *bed {
	t.Helper()
	b := newBed(t, path, changes...)
	require.NoError(t, b.Open())
	return b
}

// someFile is the path of a file with a content.
func someFile(t testing.TB, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lines.json")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func contentOf(t testing.TB, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(content)
}

// numbersIn are the numbers of the lines of files, which have to be whole.
func numbersIn(t testing.TB, paths ...string) (numbers []int) {
	t.Helper()
	for _, path := range paths {
		content := contentOf(t, path)
		require.True(t, content == "" || strings.HasSuffix(content, "\n"), "%s: the last line is torn: %q", path, content[max(0, len(content)-80):])
		for text := range strings.Lines(content) {
			var line struct{ N int }
			require.NoError(t, json.Unmarshal([]byte(text), &line), "%s: %q", path, text)
			numbers = append(numbers, line.N)
		}
	}
	return numbers
}

// clock returns a clock that stands still.
func clock(text string) func() time.Time {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		panic(err)
	}
	return func() time.Time { return at }
}
