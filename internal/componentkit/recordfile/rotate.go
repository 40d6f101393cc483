// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// backupTime is when a file was renamed, in UTC, as its name has it.
const backupTime = "2006-01-02T15-04-05.000"

// rotate renames the file and makes an empty one. It deletes the oldest backups first, so that
// there are never more files than allowed, and a full disk gets room.
func (f *File) rotate() error {
	if err := f.list(); err != nil {
		return err
	}
	for len(f.kept) >= f.settings.MaxBackups {
		if err := f.deleteOldest(); err != nil {
			return err
		}
	}
	// Names stay in the order of the files, even if the clock goes back.
	at := f.now().UTC().Truncate(time.Millisecond)
	if n := len(f.kept); n > 0 && !at.After(f.kept[n-1].at) {
		at = f.kept[n-1].at.Add(time.Millisecond)
	}
	prefix, extension := nameParts(f.settings.Path)
	renamed := backup{path: prefix + at.Format(backupTime) + extension, at: at, size: f.end}
	if err := os.Rename(f.settings.Path, renamed.path); err != nil {
		return err
	}
	f.kept = append(f.kept, renamed)
	f.observer.Rotated(renamed.path)
	if err := f.drop(); err != nil {
		return err
	}
	return f.open()
}

// prune deletes the oldest backups until the settings have room for so many more bytes, and those that are too old. It
// lists the backups only if that may be necessary.
func (f *File) prune(more int64) error {
	if !f.isOver(more) {
		return nil
	}
	if err := f.list(); err != nil {
		return err
	}
	for f.isOver(more) {
		if err := f.deleteOldest(); err != nil {
			return err
		}
	}
	return nil
}

// isOver reports whether the oldest backup is too old, or has the room that so many more bytes need.
func (f *File) isOver(more int64) bool {
	if len(f.kept) == 0 {
		return false
	}
	if age := f.settings.MaxBackupAge; age > 0 && f.now().Sub(f.kept[0].at) >= age {
		return true
	}
	if f.settings.MaxTotalBytes == 0 {
		return false
	}
	total := f.end + more
	for _, b := range f.kept {
		total += b.size
	}
	return total > f.settings.MaxTotalBytes
}

func (f *File) deleteOldest() error {
	if err := os.Remove(f.kept[0].path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f.kept = f.kept[1:]
	return nil
}

func (f *File) list() (err error) {
	f.kept, err = backups(f.settings.Path)
	return err
}

// backup is an earlier file.
type backup struct {
	path string
	// at is when it was renamed.
	at   time.Time
	size int64
}

// nameParts returns the parts of a backup's path before and behind its time.
func nameParts(path string) (prefix, extension string) {
	extension = filepath.Ext(path)
	return strings.TrimSuffix(path, extension) + "-", extension
}

// backups are the earlier files of a path, the oldest first. Those of the Collector's file exporter, of
// the same path, are among them: their names have a word behind the time.
func backups(path string) (all []backup, err error) {
	prefix, extension := nameParts(path)
	directory := filepath.Dir(path)
	entries, err := os.ReadDir(directory)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		name, ok := strings.CutPrefix(entry.Name(), filepath.Base(prefix))
		name, hasExtension := strings.CutSuffix(name, extension)
		if !ok || !hasExtension || !entry.Type().IsRegular() || len(name) < len(backupTime) {
			continue
		}
		at, err := time.Parse(backupTime, name[:len(backupTime)])
		if rest := name[len(backupTime):]; err != nil || rest != "" && rest != "-size" {
			continue
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return nil, err
		}
		all = append(all, backup{filepath.Join(directory, entry.Name()), at, info.Size()})
	}
	slices.SortFunc(all, func(a, b backup) int { return a.at.Compare(b.at) })
	return all, nil
}
