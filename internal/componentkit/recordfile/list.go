// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Listed is a file of a path, as others than its writer see it.
type Listed struct {
	// Name is the name in the directory of the path.
	Name string
	// Size is in bytes. That of the current file grows.
	Size int64
	// Until is when the file got its last record, or was renamed.
	Until time.Time
	// Current: the file is written now, or was when its writer ended. The others are backups.
	Current bool
}

// List returns the files of a path, the latest first. There may be none. Each can be deleted at any time.
func List(path string) (all []Listed, err error) {
	earlier, err := backups(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	for _, b := range earlier {
		all = append(all, Listed{Name: filepath.Base(b.path), Size: b.size, Until: b.at})
	}
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Mode().IsRegular() && info.Size() > 0:
		all = append(all, Listed{Name: filepath.Base(path), Size: info.Size(), Until: info.ModTime(), Current: true})
	}
	slices.Reverse(all)
	return all, nil
}

// Snapshot is a file as it was when it was opened. It ends with a whole record.
type Snapshot struct {
	Listed Listed
	*io.SectionReader
	file *os.File
}

// Close closes the file.
func (s *Snapshot) Close() error { return s.file.Close() }

// OpenListed opens a file of a path that List has, by its name. LastEnd is that of the settings. The error of any other
// name, and of a file that was deleted, is fs.ErrNotExist.
func OpenListed(path, name string, lastEnd func(r io.ReaderAt, size int64) (int64, error)) (*Snapshot, error) {
	all, err := List(path)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(l Listed) bool { return l.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("%s has no file %q: %w", filepath.Dir(path), name, fs.ErrNotExist)
	}
	file, err := os.Open(filepath.Join(filepath.Dir(path), name))
	if err != nil {
		return nil, err
	}
	s := &Snapshot{Listed: all[i], file: file}
	info, err := file.Stat()
	if err == nil {
		s.Listed.Size, err = lastEnd(file, info.Size())
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	s.SectionReader = io.NewSectionReader(file, 0, s.Listed.Size)
	return s, nil
}
