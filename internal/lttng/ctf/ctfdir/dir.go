// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctfdir

import (
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
)

// metadataFile is the name of the file that makes a directory a trace.
const metadataFile = "metadata"

// Dir is the directory of one trace.
type Dir struct {
	// Name is the directory's path in its file system.
	Name string
	// Metadata is the content of the metadata file.
	Metadata []byte
	Trace    *ctf.Trace
	// Streams are the names of the files of packets, sorted.
	Streams []string

	fsys fs.FS
}

// Find returns the directories of all traces at and below root, sorted.
func Find(fsys fs.FS, root string) ([]string, error) {
	var dirs []string
	err := fs.WalkDir(fsys, root, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && entry.Name() == metadataFile {
			dirs = append(dirs, path.Dir(name))
		}
		return err
	})
	slices.Sort(dirs)
	return dirs, err
}

// Open reads the metadata of the trace in a directory and lists its streams.
func Open(fsys fs.FS, dir string) (*Dir, error) {
	d := &Dir{Name: dir, Trace: ctf.NewTrace(), fsys: fsys}
	if err := d.readMetadata(); err != nil {
		return nil, fmt.Errorf("%s: %w", path.Join(dir, metadataFile), err)
	}
	entries, err := fs.ReadDir(fsys, dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !e.IsDir() && e.Name() != metadataFile && !strings.HasPrefix(e.Name(), ".") {
			d.Streams = append(d.Streams, e.Name())
		}
	}
	return d, nil
}

func (d *Dir) readMetadata() error {
	f, err := d.fsys.Open(path.Join(d.Name, metadataFile))
	if err != nil {
		return err
	}
	defer f.Close() // read only: nothing can be lost
	if d.Metadata, err = io.ReadAll(io.LimitReader(f, ctf.MaxMetadataBytes+1)); err != nil {
		return err
	}
	return d.Trace.Append(d.Metadata)
}
