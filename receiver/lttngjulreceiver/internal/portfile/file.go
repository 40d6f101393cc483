// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package portfile writes and checks the files from which LTTng's agents read the port of their daemon.
package portfile

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// HomePrefix begins paths in the home directory of the collector's user.
	HomePrefix = "~/"

	// maxFile is the largest size of a port file.
	maxFile = 64
	// fileMode lets agents of all users read the file.
	fileMode = 0o644
	// directoryMode is the mode of a new directory for it.
	directoryMode = 0o755
	// askTimeout bounds the check if a daemon listens.
	askTimeout = time.Second
)

// file is a file from which agents learn the port: a line with its decimal number. LTTng's session daemon writes
// the same file, and overwrites any content.
//
// The port in a file shows its owner. A running daemon listens on its port, and a stopped daemon does not. A file with
// the receiver's own port belongs to the receiver, also after a crash.
type file struct {
	path string
	port int
	// madeDirectory: the receiver created the directory.
	madeDirectory bool
}

// ownedError: a port file belongs to another daemon.
type ownedError struct {
	path string
	port int
}

func (e *ownedError) Error() string {
	return fmt.Sprintf("%s has port %d, on which another daemon listens, such as lttng-sessiond or another collector: stop that one, or leave the file out of port_files", e.path, e.port)
}

// strangeError: the file is not a port file.
type strangeError struct{ path, got string }

func (e *strangeError) Error() string {
	return fmt.Sprintf("%s: expected a file with a port, got %s: remove it if no program needs it, or leave it out of port_files", e.path, e.got)
}

// newFile returns the port file for a path in the configuration.
func newFile(path string, port int) (*file, error) {
	if rest, inHome := strings.CutPrefix(path, HomePrefix); inHome {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, fmt.Errorf("%s: there is no home directory: %w: set port_files to absolute paths", path, err)
		}
		path = filepath.Join(home, rest)
	}
	return &file{path: path, port: port}, nil
}

// claim writes the port, unless the file already has it, and reports whether it wrote. A file of another daemon stays,
// with an *ownedError, as does a file that is not a port file.
func (f *file) claim() (written bool, err error) {
	port, there, err := f.read()
	switch {
	case err != nil:
		return false, err
	case there && port == f.port:
		return false, nil
	case port != 0 && listens(port):
		return false, &ownedError{path: f.path, port: port}
	}
	return true, f.write(there)
}

// release removes the file if the receiver owns it, and the directory if the receiver created it and it is empty.
func (f *file) release() error {
	port, there, err := f.read()
	if err != nil || !there || port != f.port {
		return err
	}
	if err := os.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: remove the file, because agents connect to the port in it", err)
	}
	if f.madeDirectory {
		// It stays if it has other files.
		_ = os.Remove(filepath.Dir(f.path))
	}
	return nil
}

// read returns the port in the file. A daemon that dies during a write leaves an empty file, whose port is 0. It
// returns an error for a file that is not a port file.
func (f *file) read() (port int, there bool, err error) {
	info, err := os.Lstat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return 0, true, &strangeError{f.path, fmt.Sprintf("%s of %d bytes", info.Mode(), info.Size())}
	}
	content, err := os.ReadFile(f.path)
	if err != nil {
		return 0, true, fmt.Errorf("%w: run the collector as a user who may read and write it, or leave it out of port_files", err)
	}
	text := strings.TrimSpace(string(content))
	if text == "" {
		return 0, true, nil
	}
	number, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0, true, &strangeError{f.path, strconv.Quote(string(content))}
	}
	return int(number), true, nil
}

// write writes the file in one step, so that no agent reads a part of it. Only with replace it replaces an existing
// file.
func (f *file) write(replace bool) error {
	directory, remedy := filepath.Dir(f.path), "let the collector's user write to"
	unmade := os.Mkdir(directory, directoryMode)
	if unmade == nil {
		f.madeDirectory = true
	}
	temporary, err := f.writeBeside(directory)
	if err == nil && replace {
		err = os.Rename(temporary, f.path)
	} else if err == nil {
		err = os.Link(temporary, f.path)
	}
	if temporary != "" {
		// This fails after a rename.
		_ = os.Remove(temporary)
	}
	if errors.Is(err, fs.ErrNotExist) && unmade != nil {
		err, remedy = unmade, "make for the collector's user the directory"
	}
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w: %s %s, or leave the file out of port_files", f.path, err, remedy, directory)
	}
	return nil
}

// writeBeside writes a file under another name, and returns that name as soon as the file
// exists.
func (f *file) writeBeside(directory string) (path string, err error) {
	temporary, err := os.CreateTemp(directory, "."+filepath.Base(f.path)+".*")
	if err != nil {
		return "", err
	}
	_, err = fmt.Fprintf(temporary, "%d\n", f.port)
	return temporary.Name(), errors.Join(err, temporary.Chmod(fileMode), temporary.Close())
}

// listens reports whether a daemon listens on a port of agentHost.
func listens(port int) bool {
	conn, err := net.DialTimeout("tcp", net.JoinHostPort(agentHost, strconv.Itoa(port)), askTimeout)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// agentHost is the address at which agents search for a daemon.
const agentHost = "127.0.0.1"
