// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package capturefile reads zip files with captures of agents. It does not know the names
// and contents of their files, which depend on the protocol.
package capturefile

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
)

// Limits limit the unpacked content of a zip file, in bytes.
type Limits struct {
	// File is the limit of one file; All is the limit of all wanted files together.
	File, All int64
}

// Open reads the capture in the zip file of that name.
func Open[Capture any](name string, read func(r io.ReaderAt, size int64) (*Capture, error)) (*Capture, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("open capture: %w", err)
	}
	defer f.Close() // the file is only read, so an error has no effect
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("open capture: %w", err)
	}
	c, err := read(f, info.Size())
	if err != nil {
		return nil, fmt.Errorf("capture %s: %w", name, err)
	}
	return c, nil
}

// Unpack returns the content of each wanted file, by its name without folder. An empty file is not nil. It skips files
// with other names. It fails if two files have the same name, or if the unpacked bytes exceed the limits, even if the
// zip file claims smaller sizes.
func Unpack(r io.ReaderAt, size int64, limits Limits, wanted func(name string) bool) (map[string][]byte, error) {
	archive, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("expected a zip file: %w", err)
	}
	files := map[string][]byte{}
	room := limits.All
	for _, f := range archive.File {
		name := path.Base(f.Name)
		if f.FileInfo().IsDir() || !wanted(name) {
			continue
		}
		if _, twice := files[name]; twice {
			return nil, fmt.Errorf("expected one file %s, got a second: %s", name, f.Name)
		}
		content, err := unpack(f, min(room, limits.File))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		room -= int64(len(content))
		files[name] = content
	}
	return files, nil
}

// unpack reads at most limit bytes, even if the archive claims a smaller size.
func unpack(f *zip.File, limit int64) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	var content bytes.Buffer
	_, err = content.ReadFrom(io.LimitReader(r, limit+1))
	if err := errors.Join(err, r.Close()); err != nil {
		return nil, err
	}
	if int64(content.Len()) > limit {
		return nil, fmt.Errorf("expected at most %d bytes, got more", limit)
	}
	// Bytes is nil for an existing empty file.
	return append([]byte{}, content.Bytes()...), nil
}
