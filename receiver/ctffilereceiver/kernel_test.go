// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctffilereceiver

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/sim/synthetic"
)

// smallKernel returns a trace of a kernel with two CPUs: a process reads a file, waits for a disk, and runs again after
// the disk's interrupt.
func smallKernel() *synthetic.Session {
	s := synthetic.New("kernel")
	s.Kernel = true
	s.Class("lttng_statedump_process_state", "tid", "pid", "name$")
	s.Class("sched_switch", "prev_comm$", "prev_tid", "prev_state", "next_comm$", "next_tid")
	s.Class("sched_waking", "comm$", "tid")
	s.Class("irq_handler_entry", "irq", "name$")
	s.Class("irq_handler_exit", "irq", "ret")
	s.Class("block_rq_issue", "dev", "sector", "nr_sector", "rwbs$")
	s.Class("block_rq_complete", "dev", "sector", "nr_sector")
	s.Class("syscall_entry_read", "fd", "count")
	s.Class("syscall_exit_read", "ret")
	at := uint64(1_000_000)
	s.Stream().Packet(at)
	s.Stream().Packet(at)
	s.Streams[1].CPU = 1
	event := func(cpu int, class string, values ...any) {
		at += 1_000_000
		s.Streams[cpu].Event(at, class, values...)
	}
	const disk = 8 << 20
	event(0, "lttng_statedump_process_state", 7, 7, "web")
	event(0, "sched_switch", "swapper/0", 0, 0, "web", 7)
	event(0, "syscall_entry_read", 3, 4096)
	event(0, "block_rq_issue", disk, 100, 8, "R")
	event(0, "sched_switch", "web", 7, 1, "swapper/0", 0)
	event(1, "irq_handler_entry", 11, "sda")
	event(1, "block_rq_complete", disk, 100, 8)
	event(1, "sched_waking", "web", 7)
	event(1, "irq_handler_exit", 11, 1)
	event(0, "sched_switch", "swapper/0", 0, 0, "web", 7)
	event(0, "syscall_exit_read", 4096)
	event(0, "sched_switch", "web", 7, 1, "swapper/0", 0)
	return s
}

// The end-to-end test of config/ctf-file-kernel.yaml reads these files.
func TestTheStoredTraceOfAKernelIsTheGeneratedOne(t *testing.T) {
	dir, stored := t.TempDir(), filepath.Join("..", "..", "testdata", "lttng", "kernel")
	write(t, dir, smallKernel())
	names, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, names, 3)
	for _, name := range names {
		want, err := os.ReadFile(filepath.Join(dir, name.Name()))
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join(stored, name.Name()))
		require.NoError(t, err)
		assert.Equal(t, want, got, name.Name())
	}
}
