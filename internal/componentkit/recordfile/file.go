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
	"syscall"
	"time"
)

// Settings describe the file and how it is written.
type Settings struct {
	Path string
	// CreateDirectory makes the directory of the file, and those above it, with DirectoryMode.
	CreateDirectory         bool
	FileMode, DirectoryMode fs.FileMode
	// MaxBytes is the size that a file does not exceed, unless it has one record alone.
	MaxBytes int64
	// MaxBackups is the number of earlier files to keep, at least 1.
	MaxBackups int
	// MaxTotalBytes is the size that the file and all backups together do not exceed, unless the file alone does; 0: none.
	MaxTotalBytes int64
	// MaxBackupAge is the time after its renaming at which a backup is deleted; 0: none.
	MaxBackupAge time.Duration
	// Sync waits until a record is on the disk, and not only in the kernel.
	Sync bool
	// Starts are the first bytes of any file of these records. A file with another beginning
	// belongs to another program and is never changed.
	Starts []string
	// LastEnd returns the offset behind the last whole record of a file of a size, or 0.
	LastEnd func(r io.ReaderAt, size int64) (int64, error)
}

// Observer learns what happens to a file beside its records.
type Observer struct {
	// Repaired: the file was cut at an offset, and lost a torn record of so many bytes.
	Repaired func(offset, bytes int64)
	// Rotated: the file has a new name, and an empty one has its place.
	Rotated func(backup string)
	// Replaced: another program moved or deleted the file. The next record begins a new one.
	Replaced func()
	// Unlocked: the file system has no locks, so a second writer is not noticed.
	Unlocked func(err error)
}

// ErrClosed is the error of a file that was closed, or never opened.
var ErrClosed = errors.New("the file is not open: the exporter was shut down or not started")

// handle is as much of *os.File as is used.
type handle interface {
	Write(record []byte) (int, error)
	ReadAt(b []byte, offset int64) (int, error)
	Truncate(size int64) error
	Stat() (fs.FileInfo, error)
	Sync() error
	Fd() uintptr
	Close() error
}

// File appends records to a file. It is for one goroutine at a time.
type File struct {
	settings Settings
	observer Observer
	openFile func(path string, mode fs.FileMode) (handle, error)
	now      func() time.Time

	opened, closed bool
	handle         handle // nil: it has to be opened
	info           fs.FileInfo
	// end is the offset behind the last whole record.
	end int64
	// torn: there may be bytes of a failed write behind the end.
	torn bool
	// kept are the backups when they were last listed.
	kept []backup
}

// New describes a file. Open opens it.
func New(settings Settings, observer Observer) *File {
	return &File{settings: settings, observer: observer, openFile: openFile, now: time.Now}
}

func openFile(path string, mode fs.FileMode) (handle, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, mode)
}

// Open opens the file, makes it if there is none, and repairs its end. It fails if another writer
// has the file, or if the file does not begin like one of such records.
func (f *File) Open() error {
	if err := f.open(); err != nil {
		return f.explain(err)
	}
	f.opened = true
	if err := f.list(); err != nil {
		return errors.Join(err, f.Close())
	}
	return nil
}

// explain adds a remedy to errors that a person can mend.
func (f *File) explain(err error) error {
	directory := filepath.Dir(f.settings.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: create the directory %s, or set create_directory to true", err, directory)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w: let the collector's user write to the directory %s, or set path to a file elsewhere", err, directory)
	}
	return err
}

// Append writes a record as a whole or not at all:
//
//  1. Mend the file unless it is open, has its name, and ends with a whole record.
//  2. If the record has no room, rename the file and make an empty one.
//  3. Delete the backups that the settings no longer allow.
//  4. Write the record with one call, and wait for the disk if the settings ask for it.
//  5. If 4 failed, cut the file at its end before the record. If that fails too, the file
//     is torn: step 1 of the next call cuts it, and nothing is written before.
//
// After an error the record is not in the file, or will be cut off: the caller may try again.
func (f *File) Append(record []byte) error {
	if !f.opened || f.closed {
		return ErrClosed
	}
	if err := f.mend(); err != nil {
		return f.explain(err)
	}
	if f.end > 0 && f.end+int64(len(record)) > f.settings.MaxBytes {
		if err := f.rotate(); err != nil {
			return f.explain(fmt.Errorf("rotate: %w", err))
		}
	}
	if err := f.prune(int64(len(record))); err != nil {
		return f.explain(fmt.Errorf("delete an earlier file: %w", err))
	}
	_, err := f.handle.Write(record)
	if err == nil && f.settings.Sync {
		err = f.handle.Sync()
	}
	if err != nil {
		f.torn = true
		return errors.Join(err, f.cut())
	}
	f.end += int64(len(record))
	return nil
}

// Size returns the size of the whole records in the file, in bytes.
func (f *File) Size() int64 { return f.end }

// Rotate renames the file and makes an empty one, unless the file is empty.
func (f *File) Rotate() error {
	if !f.opened || f.closed {
		return ErrClosed
	}
	if err := f.mend(); err != nil {
		return f.explain(err)
	}
	if f.end == 0 {
		return nil
	}
	if err := f.rotate(); err != nil {
		return f.explain(fmt.Errorf("rotate: %w", err))
	}
	return nil
}

// Expire deletes the backups that became too old since the last Append.
func (f *File) Expire() error {
	if !f.opened || f.closed {
		return ErrClosed
	}
	if err := f.prune(0); err != nil {
		return f.explain(fmt.Errorf("delete an earlier file: %w", err))
	}
	return nil
}

// Close closes the file. A torn end is cut off if that is possible now; if not, the next Open
// of the file does it.
func (f *File) Close() error {
	if f.closed {
		return nil
	}
	f.closed = true
	if f.handle == nil {
		return nil
	}
	return errors.Join(f.cut(), f.drop())
}

// mend lets the file be open, and its end be that of a whole record.
func (f *File) mend() error {
	if f.handle == nil {
		return f.open()
	}
	info, err := os.Stat(f.settings.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && !os.SameFile(info, f.info):
		f.observer.Replaced()
		if err := errors.Join(f.cut(), f.drop()); err != nil {
			return err
		}
		return f.open()
	case err != nil:
		return err
	case f.torn:
		return f.cut()
	case info.Size() != f.end:
		return f.repair(f.handle, info.Size())
	}
	return nil
}

// cut cuts a torn file at its end.
func (f *File) cut() error {
	if !f.torn {
		return nil
	}
	if err := f.handle.Truncate(f.end); err != nil {
		return fmt.Errorf("cut a torn record off at byte %d: %w", f.end, err)
	}
	f.torn = false
	return nil
}

// drop closes the handle.
func (f *File) drop() error {
	h := f.handle
	f.handle, f.torn = nil, false
	return h.Close()
}

// open opens the file, which no other writer may have, and repairs its end.
func (f *File) open() error {
	if f.settings.CreateDirectory {
		if err := os.MkdirAll(filepath.Dir(f.settings.Path), f.settings.DirectoryMode); err != nil {
			return err
		}
	}
	h, err := f.openFile(f.settings.Path, f.settings.FileMode)
	if err != nil {
		return err
	}
	if err := f.adopt(h); err != nil {
		return errors.Join(err, h.Close())
	}
	f.handle = h
	return nil
}

// adopt checks, locks and repairs a file that was opened.
func (f *File) adopt(h handle) error {
	info, err := h.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file (%v): set path to a file", f.settings.Path, info.Mode().Type())
	}
	if err := lock(h.Fd()); errors.Is(err, errLocked) {
		return fmt.Errorf("another exporter or collector writes to %s: set path to another file", f.settings.Path)
	} else if err != nil {
		f.observer.Unlocked(err)
	}
	// The writer that had the lock before may have renamed the file.
	if info, err = os.Stat(f.settings.Path); err != nil {
		return err
	}
	own, err := h.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(info, own) {
		return fmt.Errorf("%s was replaced while it was opened", f.settings.Path)
	}
	f.info = own
	if err := f.repair(h, own.Size()); err != nil {
		return err
	}
	if f.settings.Sync && own.Size() == 0 {
		return syncDirectory(filepath.Dir(f.settings.Path))
	}
	return nil
}

// syncDirectory lets the name of a new file survive the death of the machine.
func syncDirectory(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
