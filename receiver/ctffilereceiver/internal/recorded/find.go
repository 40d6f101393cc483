// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package recorded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// metadataFile is the name of the file that makes a directory a trace.
const metadataFile = "metadata"

// maxEntries bounds the files and directories of one search.
const maxEntries = 1_000_000

// Finder finds directories of traces.
type Finder struct {
	Include, Exclude []Pattern
	// MaxDirs is the maximum number of directories of traces.
	MaxDirs int
}

// errTooMany ends a search.
var errTooMany = errors.New("expected fewer files and directories")

// Find returns the directories of all traces that match, sorted. An error names a directory that cannot be read, or a
// bound, or is the reason why ctx is done. The directories that were found are returned with it.
func (f *Finder) Find(ctx context.Context) ([]string, error) {
	var failed []error
	found := map[string]bool{}
	entries := 0
	for i := range f.Include {
		pattern := &f.Include[i]
		root, err := filepath.EvalSymlinks(pattern.root())
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				failed = append(failed, err)
			}
			continue
		}
		// The patterns are those of the path before links are resolved.
		named := func(name string) string { return pattern.root() + strings.TrimPrefix(name, root) }
		err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
			switch entries++; {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case entries > maxEntries:
				return fmt.Errorf("include %q: %w: there are more than %d", pattern.text, errTooMany, maxEntries)
			case err != nil && errors.Is(err, fs.ErrNotExist):
				return nil // removed during the search
			case err != nil:
				failed = append(failed, err)
				if entry != nil && entry.IsDir() {
					return fs.SkipDir
				}
				return nil
			case f.isExcluded(named(name)):
				if entry.IsDir() {
					return fs.SkipDir
				}
				return nil
			case entry.Name() != metadataFile || !entry.Type().IsRegular():
				return nil
			case !pattern.Match(filepath.Dir(named(name))) && !pattern.Match(named(name)):
				return nil
			}
			if found[filepath.Dir(name)] = true; len(found) > f.MaxDirs {
				return fmt.Errorf("limits.max_traces is %d: there are more traces", f.MaxDirs)
			}
			return nil
		})
		if err != nil {
			failed = append(failed, err)
			break
		}
	}
	dirs := make([]string, 0, len(found))
	for dir := range found {
		dirs = append(dirs, dir)
	}
	slices.Sort(dirs)
	return dirs, errors.Join(failed...)
}

func (f *Finder) isExcluded(name string) bool {
	return slices.ContainsFunc(f.Exclude, func(p Pattern) bool { return p.Match(name) })
}

// packetFiles returns the paths and sizes of the files of packets in the directory of a trace, sorted: all regular
// files except metadata and those that begin with a dot.
func packetFiles(dir string, most int) (files []file, err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close() // read only: nothing can be lost
	if err := checkLinks(dir); err != nil {
		return nil, err
	}
	entries, err := d.ReadDir(maxEntries)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || e.Name() == metadataFile || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // removed in the meantime
		}
		if len(files) == most {
			return nil, fmt.Errorf("%s: expected at most %d files of packets (limits.max_streams), got more", dir, most)
		}
		files = append(files, file{path: filepath.Join(dir, e.Name()), size: info.Size(), info: info})
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.path, b.path) })
	return files, nil
}
