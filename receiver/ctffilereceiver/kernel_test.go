// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctffilereceiver

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/sim/synthetic"
	"github.com/callbraid/callbraid/internal/receiverkit/sharedreceiver"
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

// Without pipelines of log records and traces, values of most events are not read. The processes are the same.
func TestProcessesAreCountedIfOnlyMetricsAreUsed(t *testing.T) {
	dir := t.TempDir()
	s := smallKernel()
	s.Streams[0].
		Event(14_000_000, "lttng_statedump_process_state", 9, 9, "db").
		Event(15_000_000, "sched_switch", "swapper/0", 0, 0, "db", 9).
		Event(16_000_000, "irq_handler_entry", 11, "sda").
		Event(17_000_000, "irq_handler_entry", 11, "sda")
	write(t, dir, s)
	const events = 16
	counts := map[string]int64{}
	for name, next := range map[string]func(*bed) sharedreceiver.Signals{
		"all":     func(b *bed) sharedreceiver.Signals { return b.Next },
		"metrics": func(b *bed) sharedreceiver.Signals { return sharedreceiver.Signals{Metrics: b.Metrics} },
	} {
		b := newBed(t, dir, watching(20*time.Millisecond, time.Hour), func(b *bed, _ *Config) { b.Next = next(b) })
		b.Await("all events", func() bool {
			states := b.receiver.reader.states()
			if len(states) == 1 && states[0].Events == events {
				counts[name] = states[0].Processes
			}
			return counts[name] > 0
		})
		b.Shutdown()
	}
	assert.Equal(t, map[string]int64{"all": 3, "metrics": 3}, counts, "the kernel, web, and db, which does not leave its CPU")
}
