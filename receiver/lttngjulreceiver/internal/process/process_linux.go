// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package process

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
	// maxOpenFiles bounds the open files of a process among which sockets are searched, and filesPerRead how many names one
	// read of the directory returns.
	maxOpenFiles = 1 << 14
	filesPerRead = 256
)

// readSockets returns the start of a process and its open sockets among its first maxOpenFiles files. It stops at the
// time until.
func readSockets(pid uint32, until time.Time) (started uint64, sockets []uint32) {
	directory := directoryOf(pid)
	files, err := os.Open(filepath.Join(directory, "fd"))
	if err != nil {
		return 0, nil
	}
	defer files.Close()
	started = startOf(filepath.Join(directory, "stat"))
	for seen := 0; seen < maxOpenFiles && time.Now().Before(until); seen += filesPerRead {
		names, err := files.Readdirnames(filesPerRead)
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

// socketOf returns the number of a socket whose file has a name like socket:[1234].
func socketOf(target string) (number uint32, is bool) {
	digits, is := strings.CutPrefix(target, "socket:[")
	if !is {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSuffix(digits, "]"), 10, 32)
	return uint32(n), err == nil
}

// describe returns the program, arguments and start of a process.
func describe(pid uint32, readArguments bool) Process {
	directory := directoryOf(pid)
	executable, err := os.Readlink(filepath.Join(directory, "exe"))
	if err != nil {
		return Process{}
	}
	p := Process{Name: programOf(executable), Started: startOf(filepath.Join(directory, "stat"))}
	if readArguments {
		p.Arguments = commandLine(filepath.Join(directory, "cmdline"))
	}
	return p
}

// programOf returns the name of an executable file. The kernel marks a file that was replaced while it runs.
func programOf(executable string) string {
	return strings.ToValidUTF8(strings.TrimSuffix(filepath.Base(executable), " (deleted)"), "\uFFFD")
}

// startOf returns the start of a process, in ticks since the start of the system. Zero: unknown.
func startOf(path string) uint64 {
	stat, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	// The second field is a name in parentheses with any characters. The start is the 22nd field.
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

// commandLine returns the arguments of a process, up to maxCommandLine bytes.
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
