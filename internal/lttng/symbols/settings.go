// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// Settings say where object files are looked for, and what may be read and kept.
type Settings struct {
	// Paths are directories that hold object files under the paths that they had
	// where the program ran: "/" on the same machine, or a copy of another
	// machine's root; and files with debug information, as usr/lib/debug holds
	// them. Empty: no file is read.
	Paths []string
	// MaxFileBytes is the size of the largest file that is opened.
	MaxFileBytes int64
	// MaxSymbols is the number of symbols in the largest symbol table that is
	// read, 24 bytes each in a file of 64 bits.
	MaxSymbols int
	// MaxTableBytes bounds the memory of all tables of functions, and the table of
	// names that is read for one of them, 1 to 4 GiB - 1. Beyond it the tables that
	// were not used for longest are given up, and read again when they are asked
	// for.
	MaxTableBytes int64
	// Hold is called with what all tables take when that has changed, and says how many bytes
	// are too many: tables that were not used for longest are given up for them. nil:
	// MaxTableBytes is the only bound.
	Hold func(bytes int64) (excess int64)
	// RetryAfter is how long a file that was not found is not looked for again.
	RetryAfter time.Duration
	// Report is told why the functions of an object have no names: no file was
	// found, or each that was found was refused. It is called by whoever asks for a
	// name, once for each search, so at most once in RetryAfter for a file, and must
	// not ask for names itself; nil: nobody is told.
	Report func(object string, err error)
}

// DefaultSettings reads files of this machine.
func DefaultSettings() Settings {
	return Settings{
		Paths:         []string{"/"},
		MaxFileBytes:  4 << 30,
		MaxSymbols:    4 << 20,
		MaxTableBytes: 256 << 20,
		RetryAfter:    time.Minute,
	}
}

// Validate returns what is wrong with the settings.
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
	// Tables refer to their names with 32 bits.
	if s.MaxTableBytes < 1 || s.MaxTableBytes >= 1<<32 {
		errs = append(errs, fmt.Errorf("memory for tables of functions is %d bytes, expected 1 to %d", s.MaxTableBytes, int64(1<<32-1)))
	}
	if s.RetryAfter < 0 {
		errs = append(errs, fmt.Errorf("time until a file is looked for again is %v, expected at least 0", s.RetryAfter))
	}
	return errors.Join(errs...)
}
