// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
)

// follower reads new lines of a growing file. If another file gets the name, it reads that one
// next.
type follower struct {
	name   string
	from   int64 // where to begin in the first file
	file   *os.File
	reader *bufio.Reader
	part   []byte // of an unfinished line
	old    bool   // the name is another file's: this one grows no more
}

func newFollower(name string) (*follower, error) {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return &follower{name: name}, nil
	}
	if err != nil {
		return nil, err
	}
	return &follower{name: name, from: info.Size()}, nil
}

// next returns the next line, or nil if there is none yet. It is valid until the next
// call.
func (f *follower) next() ([]byte, error) {
	if f.file == nil {
		if opened, err := f.open(); !opened || err != nil {
			return nil, err
		}
	}
	for {
		more, err := f.reader.ReadSlice('\n')
		f.part = append(f.part, more...)
		switch {
		case err == nil:
			line := bytes.TrimSpace(f.part)
			f.part = f.part[:0]
			if len(line) > 0 {
				return line, nil
			}
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			if !f.old {
				if !f.replaced() {
					return nil, nil
				}
				f.old = true // the rest of the old file is read first
				continue
			}
			f.close()
			if opened, err := f.open(); !opened || err != nil {
				return nil, err
			}
		default:
			return nil, err
		}
	}
}

func (f *follower) open() (opened bool, err error) {
	file, err := os.Open(f.name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if _, err := file.Seek(f.from, io.SeekStart); err != nil {
		file.Close() // read only
		return false, err
	}
	f.from, f.old = 0, false
	f.file, f.reader = file, bufio.NewReaderSize(file, 1<<20)
	return true, nil
}

// replaced reports whether the name is another file's now.
func (f *follower) replaced() bool {
	now, err := os.Stat(f.name)
	if err != nil {
		return false
	}
	mine, err := f.file.Stat()
	return err == nil && !os.SameFile(mine, now)
}

func (f *follower) close() {
	if f.file != nil {
		f.file.Close() // read only
		f.file = nil
	}
	f.part = f.part[:0]
}
