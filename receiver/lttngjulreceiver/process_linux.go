// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	// maxCommandLine is how many bytes of a command line are told.
	maxCommandLine = 4096
	// maxOpenFiles is how many open files of a process are looked at for its socket, and
	// openFilesAtOnce how many names of them are read at once.
	maxOpenFiles    = 1 << 16
	openFilesAtOnce = 256
)

// processOf says what is known of the process with an ID that is said to be at the other
// end of a connection. Nothing is, unless that process has that end open: an ID that an
// agent tells may be that of a process elsewhere, or inside a container, where it means
// another one. Looking takes the rights of its user, or root's.
func processOf(conn net.Conn, pid uint32) process {
	directory := fmt.Sprintf("/proc/%d", pid)
	files, err := os.Open(filepath.Join(directory, "fd"))
	if err != nil {
		return process{}
	}
	defer files.Close()
	inode, err := peerSocket(conn)
	if err != nil || !hasOpen(files, fmt.Sprintf("socket:[%d]", inode)) {
		return process{}
	}
	executable, err := os.Readlink(filepath.Join(directory, "exe"))
	if err != nil {
		return process{}
	}
	// The kernel says so of a file that was replaced while it runs.
	name := strings.TrimSuffix(filepath.Base(executable), " (deleted)")
	return process{
		name:      strings.ToValidUTF8(name, "\uFFFD"),
		arguments: commandLine(filepath.Join(directory, "cmdline")),
		started:   startOf(filepath.Join(directory, "stat")),
	}
}

// startOf is when a process was started, in ticks since the system was; 0: it cannot be
// known.
func startOf(path string) uint64 {
	stat, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	// The second field is a name in parentheses, and can hold anything; the start is the
	// 22nd.
	const start = 22 - 3
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) <= start {
		return 0
	}
	ticks, err := strconv.ParseUint(fields[start], 10, 64)
	if err != nil {
		return 0
	}
	return ticks
}

// hasOpen reports whether a directory of open files has one that is called so.
func hasOpen(directory *os.File, file string) bool {
	for seen := 0; seen < maxOpenFiles; seen += openFilesAtOnce {
		names, err := directory.Readdirnames(openFilesAtOnce)
		for _, name := range names {
			if target, err := os.Readlink(filepath.Join(directory.Name(), name)); err == nil && target == file {
				return true
			}
		}
		if err != nil {
			return false
		}
	}
	return false
}

// commandLine is the arguments of a process, the last of which may be cut.
func commandLine(path string) []string {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	line, err := io.ReadAll(io.LimitReader(f, maxCommandLine))
	if err != nil || len(line) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(strings.ToValidUTF8(string(line), "\uFFFD"), "\x00"), "\x00")
}
