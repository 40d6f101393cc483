// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The system's information about the process, which only Linux has in files.

func (c *Collector) proc(t testing.TB, name string) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skipf("memory and open files of a process are read from /proc: run this test on Linux, not %s", runtime.GOOS)
	}
	return fmt.Sprintf("/proc/%d/%s", c.command.Process.Pid, name)
}

// PID is the number of the process.
func (c *Collector) PID() int { return c.command.Process.Pid }

// OpenFiles is the number of files and connections that the process has open.
func (c *Collector) OpenFiles(t testing.TB) int {
	t.Helper()
	files, err := os.ReadDir(c.proc(t, "fd"))
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

// States of TCP sockets in /proc/PID/net/tcp.
const (
	established = "01"
	listening   = "0A"
)

// Listeners is the number of sockets on which the process listens for TCP.
func (c *Collector) Listeners(t testing.TB) int {
	t.Helper()
	return c.sockets(t, listening)
}

// Connections is the number of open TCP connections of the process.
func (c *Collector) Connections(t testing.TB) int {
	t.Helper()
	return c.sockets(t, established)
}

// sockets is the number of TCP sockets of the process in a state.
func (c *Collector) sockets(t testing.TB, state string) (n int) {
	t.Helper()
	inState := map[string]bool{}
	for _, name := range []string{"net/tcp", "net/tcp6"} {
		table, err := os.ReadFile(c.proc(t, name))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(table)) {
			if columns := strings.Fields(line); len(columns) > 9 && columns[3] == state {
				inState["socket:["+columns[9]+"]"] = true
			}
		}
	}
	files, err := os.ReadDir(c.proc(t, "fd"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		// A file that was closed meanwhile does not count.
		if to, err := os.Readlink(filepath.Join(c.proc(t, "fd"), file.Name())); err == nil && inState[to] {
			n++
		}
	}
	return n
}

// PeakMemory is the largest amount of memory, in bytes, that the process has
// had in RAM since its start or the last ResetPeakMemory.
func (c *Collector) PeakMemory(t testing.TB) uint64 {
	t.Helper()
	status, err := os.ReadFile(c.proc(t, "status"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(status) {
		if fields := strings.Fields(string(line)); len(fields) > 1 && fields[0] == "VmHWM:" {
			kib, err := strconv.ParseUint(fields[1], 10, 64)
			if err != nil {
				t.Fatalf("expected VmHWM in kB, got %q", line)
			}
			return kib << 10
		}
	}
	t.Fatal("expected VmHWM in /proc/PID/status, got none")
	return 0
}

// ResetPeakMemory sets PeakMemory to the memory that the process has in RAM now.
func (c *Collector) ResetPeakMemory(t testing.TB) {
	t.Helper()
	const peak = "5" // proc(5), clear_refs
	if err := os.WriteFile(c.proc(t, "clear_refs"), []byte(peak), 0); err != nil {
		t.Fatal(err)
	}
}

// CPUSoFar is the time that the living process has used, in steps of 10 ms.
func (c *Collector) CPUSoFar(t testing.TB) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(c.proc(t, "stat"))
	if err != nil {
		t.Fatal(err)
	}
	// The second field is the name in parentheses, with any characters. utime and stime are the 14th
	// and 15th, in ticks, of which every Linux that Go runs on shows 100 in a second.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const utime, stime, ticksPerSecond = 14 - 3, 15 - 3, 100
	var ticks int64
	for _, i := range []int{utime, stime} {
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			t.Fatalf("expected a number of ticks in /proc/PID/stat, got %q", fields[i])
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond
}
