// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// maxCommandLine bounds the bytes of a command line.
	maxCommandLine = 4096
	// maxOpenFiles is how many open files of a process are looked at for its sockets, and
	// openFilesAtOnce how many of them at once.
	maxOpenFiles    = 1 << 14
	openFilesAtOnce = 256
)

// readSockets says when a process was started and which sockets it has open, of the first
// maxOpenFiles files and as far as the time till then goes.
func readSockets(pid uint32, until time.Time) (started uint64, sockets []uint32) {
	directory := directoryOf(pid)
	files, err := os.Open(filepath.Join(directory, "fd"))
	if err != nil {
		return 0, nil
	}
	defer files.Close()
	started = startOf(filepath.Join(directory, "stat"))
	for seen := 0; seen < maxOpenFiles && time.Now().Before(until); seen += openFilesAtOnce {
		names, err := files.Readdirnames(openFilesAtOnce)
		for _, name := range names {
			target, _ := os.Readlink(filepath.Join(files.Name(), name))
			if socket, is := socketOf(target); is {
				sockets = append(sockets, socket)
			}
		}
		if err != nil {
			break
		}
	}
	return started, sockets
}

func directoryOf(pid uint32) string { return fmt.Sprintf("/proc/%d", pid) }

// socketOf is the number of a socket that an open file is, which is called socket:[1234].
func socketOf(target string) (number uint32, is bool) {
	digits, is := strings.CutPrefix(target, "socket:[")
	if !is {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSuffix(digits, "]"), 10, 32)
	return uint32(n), err == nil
}

// describe returns the program, arguments and start of a process.
func describe(pid uint32, withArguments bool) process {
	directory := directoryOf(pid)
	executable, err := os.Readlink(filepath.Join(directory, "exe"))
	if err != nil {
		return process{}
	}
	p := process{name: programOf(executable), started: startOf(filepath.Join(directory, "stat"))}
	if withArguments {
		p.arguments = commandLine(filepath.Join(directory, "cmdline"))
	}
	return p
}

// programOf is the name of an executable file, of which the kernel says so when it was
// replaced while it runs.
func programOf(executable string) string {
	return strings.ToValidUTF8(strings.TrimSuffix(filepath.Base(executable), " (deleted)"), "\uFFFD")
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
