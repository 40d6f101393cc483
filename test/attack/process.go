// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/callbraid/callbraid/test/kit"
)

// memory is the memory of a process in RAM. Only Linux reports it in files.
type memory struct {
	pid int

	mu           sync.Mutex
	resident     int64 // bytes, at the last look
	peak         int64 // bytes
	least        int64 // bytes, since the last call of restartLeast
	stopped      bool
	done, halted chan struct{}
}

// tooMuch is the memory, in bytes, at which the test ends the process to protect the machine.
const tooMuch = 6 << 30

// watch measures a process ten times a second, until stop is called.
func watch(c *kit.Collector) *memory {
	m := &memory{pid: c.PID(), done: make(chan struct{}), halted: make(chan struct{})}
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", m.pid), []byte("5"), 0) // the peak begins now; without the right it has the start in it
	m.measure()
	go func() {
		defer close(m.halted)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-m.done:
				return
			case <-tick.C:
				if m.measure(); m.isTooMuch() {
					c.Kill()
				}
			}
		}
	}()
	return m
}

func (m *memory) stop() {
	close(m.done)
	<-m.halted
}

// measure reads the memory of the process, unless the process has ended.
func (m *memory) measure() {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.pid))
	if err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for line := range bytes.Lines(status) {
		fields := strings.Fields(string(line))
		if len(fields) < 2 {
			continue
		}
		kib, err := strconv.ParseInt(fields[1], 10, 64)
		switch {
		case err != nil:
		case fields[0] == "VmRSS:":
			m.resident = kib << 10
			m.least = min(m.least, m.resident)
		case fields[0] == "VmHWM:":
			m.peak = max(m.peak, kib<<10)
		}
	}
}

// processorTime returns how long the threads of a process ran, and how long they waited for a
// processor. Linux counts both; other systems give 0.
func processorTime(pid int) (ran, waited time.Duration) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return 0, 0
	}
	for _, path := range threads {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // the thread has ended
		}
		var r, w time.Duration
		if _, err := fmt.Sscan(string(text), &r, &w); err == nil {
			ran, waited = ran+r, waited+w
		}
	}
	return ran, waited
}

// isTooMuch reports whether the process has ever had more than tooMuch.
func (m *memory) isTooMuch() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopped = m.stopped || m.resident > tooMuch
	return m.stopped
}

// restartLeast begins a new time for which least is returned.
func (m *memory) restartLeast() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.least = m.resident
}

// stays returns the least memory of that time, in bytes. Garbage that Go has not collected yet is not part of it.
func (m *memory) stays() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.least
}

// now returns the memory of the process and its peak, in bytes.
func (m *memory) now() (resident, peak int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.resident, m.peak
}
