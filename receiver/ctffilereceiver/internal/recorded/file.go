// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package recorded

import (
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"syscall"

	"github.com/callbraid/callbraid/internal/lttng/ctf/merge"
)

// openRegular opens a regular file. It checks the kind of the file before, because opening other files has effects, and
// again afterwards, because the file may have been replaced. O_NONBLOCK prevents that a FIFO, created in between, waits
// for a writer. It refuses a path with links.
func openRegular(name string) (*os.File, os.FileInfo, error) {
	info, err := os.Lstat(name)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s: expected a regular file, got %v", name, info.Mode().Type())
	}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	opened, err := f.Stat()
	if err == nil && !os.SameFile(info, opened) {
		err = fmt.Errorf("%s: expected the file that was found, got another one", name)
	}
	if err == nil {
		err = checkLinks(name)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, opened, nil
}

// checkLinks returns an error if a path has a link: the finder found a path without one, but a directory may have been
// replaced. The error is os.ErrNotExist, because the found path does not exist any more.
func checkLinks(name string) error {
	resolved, err := filepath.EvalSymlinks(name)
	if err == nil && resolved != name {
		err = fmt.Errorf("%s: expected a path without links, got one to %s: %w", name, resolved, os.ErrNotExist)
	}
	return err
}

// file is a file of packets.
type file struct {
	path string
	// size is the size when it was seen last, and info its state then.
	size int64
	info os.FileInfo
	// opened is nil before the first read.
	opened *os.File
	// key is that of its stream. sequence, begin and hash are those of the first packet, if hasHead. hash is 0 if the
	// packet is not whole.
	key                   string
	hasHead               bool
	sequence, begin, hash uint64
	// wasCut is set if the content was cut, and is larger now than at the last look.
	wasCut bool
	// unreadable is set if the place of the next packet is not known.
	unreadable bool
}

func (f *file) open() error {
	if f.opened != nil {
		return nil
	}
	opened, info, err := openRegular(f.path)
	if err != nil {
		return err
	}
	f.opened, f.size, f.info = opened, info.Size(), info
	return nil
}

// grow reads the size of the file, and reports whether it is larger than before.
func (f *file) grow() (bool, error) {
	info, err := f.opened.Stat()
	if err != nil {
		return false, err
	}
	if info.Size() <= f.size {
		return false, nil
	}
	f.size, f.info = info.Size(), info
	return true, nil
}

// isNumbered reports whether its packets have the number of their stream and sequence numbers.
func (f *file) isNumbered() bool { return f.key != f.path }

// first returns the first packet.
func (f *file) first() merge.FirstPacket {
	return merge.FirstPacket{Known: f.hasHead, Sequence: f.sequence, Begin: f.begin, Hash: f.hash}
}

// isReplaced reports whether another file is at the path now, or the content was cut.
func (f *file) isReplaced(by *file) bool {
	return f.wasCut || by.size < f.size || !os.SameFile(f.info, by.info)
}

// state returns a number made from the path, the size and the time of the last change.
func (f *file) state() uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, f.path, " ", f.size, " ", f.info.ModTime().UnixNano()) // a hash accepts all
	return h.Sum64()
}

func (f *file) close() {
	if f.opened != nil {
		f.opened.Close() // read only: nothing can be lost
		f.opened = nil
	}
}
