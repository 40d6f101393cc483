// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// Settings configure the search for object files and bound the reading and the memory.
type Settings struct {
	// Paths are directories in which object files have the paths of the program's machine: "/" for the same machine,
	// or a copy of another machine's root. They may also have files with debug information, for example in
	// usr/lib/debug. Without paths, no file is read.
	Paths []string
	// MaxFileBytes is the maximum size of a file.
	MaxFileBytes int64
	// MaxSymbols is the maximum number of symbols in a symbol table. Each has 24 bytes in a 64-bit file.
	MaxSymbols int
	// MaxTableBytes bounds the memory of all tables of functions, and of the names that are read for one of them, 1
	// to 4 GiB - 1. Above it, the least recently used tables are evicted. They are read again when they are needed.
	MaxTableBytes int64
	// Hold is called with the memory of all tables after it has changed, and before memory is used to read a file. It
	// returns the number of excess bytes: the least recently used tables are evicted for them. If that is not enough, the
	// file is not read. nil means that MaxTableBytes is the only bound.
	Hold func(bytes int64) (excess int64)
	// Refused is called for each file, or part of it, that was not read because of Hold. It may be nil.
	Refused func()
	// SourceLines is set if the source lines of functions are read from debug information.
	SourceLines bool
	// MaxLineBytes bounds the bytes of line tables and their texts that are read from a file, after decompression.
	MaxLineBytes int64
	// Context ends when files are no longer read: a file that is being read then has no names. nil means that it never
	// ends.
	Context context.Context
	// RetryAfter is the time after which a missing file is searched again.
	RetryAfter time.Duration
	// Report is called with the reason if the functions of an object have no names: no file exists, or each file was
	// refused. It runs in the goroutine of the lookup, once for each search, so at most once in RetryAfter for a
	// file. It must not look up names. It may be nil.
	Report func(object string, err error)
	// ReportLines is called with the reason if functions of an object have names and no source lines: once when the
	// names are read. It may be nil.
	ReportLines func(object string, err error)

	// reserve reserves memory until a file is read. The error wraps ErrNoRoom.
	reserve func(bytes int64) error
}

// ErrNoRoom means that Settings.Hold has no room for the reading of a file.
var ErrNoRoom = errors.New("no memory to read the file")

// DefaultSettings returns settings for files of this machine.
func DefaultSettings() Settings {
	return Settings{
		Paths:         []string{"/"},
		MaxFileBytes:  4 << 30,
		MaxSymbols:    4 << 20,
		MaxTableBytes: 256 << 20,
		SourceLines:   true,
		MaxLineBytes:  128 << 20,
		RetryAfter:    time.Minute,
	}
}

// err returns the reason why no file is read any more, or nil.
func (s *Settings) err() error {
	if s.Context == nil {
		return nil
	}
	return s.Context.Err()
}

// Validate checks the settings.
func (s Settings) Validate() error {
	var errs []error
	for _, dir := range s.Paths {
		if !filepath.IsAbs(dir) && !strings.HasPrefix(dir, "/") {
			errs = append(errs, fmt.Errorf("symbol path is %q, expected an absolute path", dir))
		}
	}
	if s.MaxFileBytes < 1 {
		errs = append(errs, fmt.Errorf("largest object file is %d bytes, expected at least 1", s.MaxFileBytes))
	}
	if s.MaxSymbols < 1 {
		errs = append(errs, fmt.Errorf("largest symbol table has %d symbols, expected at least 1", s.MaxSymbols))
	}
	// Tables use 32 bits for offsets of names.
	if s.MaxTableBytes < 1 || s.MaxTableBytes >= 1<<32 {
		errs = append(errs, fmt.Errorf("memory for tables of functions is %d bytes, expected 1 to %d", s.MaxTableBytes, int64(1<<32-1)))
	}
	if s.MaxLineBytes < 1 {
		errs = append(errs, fmt.Errorf("largest line tables of an object file have %d bytes, expected at least 1", s.MaxLineBytes))
	}
	if s.RetryAfter < 0 {
		errs = append(errs, fmt.Errorf("time until a missing file is searched again is %v, expected at least 0", s.RetryAfter))
	}
	return errors.Join(errs...)
}
