// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
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
	backups, err := f.backups()
	if err != nil {
		return err
	}
	for len(backups) >= f.settings.MaxBackups {
		if err := os.Remove(backups[0].path); err != nil {
			return err
		}
		backups = backups[1:]
	}
	// Names stay in the order of the files, even if the clock goes back.
	at := f.now().UTC().Truncate(time.Millisecond)
	if n := len(backups); n > 0 && !at.After(backups[n-1].at) {
		at = backups[n-1].at.Add(time.Millisecond)
	}
	prefix, extension := f.nameParts()
	backup := prefix + at.Format(backupTime) + extension
	if err := os.Rename(f.settings.Path, backup); err != nil {
		return err
	}
	f.observer.Rotated(backup)
	if err := f.drop(); err != nil {
		return err
	}
	return f.open()
}

// backup is an earlier file.
type backup struct {
	path string
	at   time.Time
}

// nameParts returns the parts of a backup's path before and behind its time.
func (f *File) nameParts() (prefix, extension string) {
	extension = filepath.Ext(f.settings.Path)
	return strings.TrimSuffix(f.settings.Path, extension) + "-", extension
}

// backups are the earlier files, the oldest first. Those of the Collector's file exporter, of
// the same path, are among them: their names have a word behind the time.
func (f *File) backups() (all []backup, err error) {
	prefix, extension := f.nameParts()
	directory := filepath.Dir(f.settings.Path)
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
		if rest := name[len(backupTime):]; err == nil && (rest == "" || rest == "-size") {
			all = append(all, backup{filepath.Join(directory, entry.Name()), at})
		}
	}
	slices.SortFunc(all, func(a, b backup) int { return a.at.Compare(b.at) })
	return all, nil
}
