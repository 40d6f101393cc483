// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package usttrace_test

import (
	"encoding/binary"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/sim/usttrace"
	"github.com/callbraid/callbraid/internal/testkit/lttngdata"
)

// The reference reader counts the same events, without a warning. Each thread leaves the functions that it entered,
// in reverse order.
func TestTheReferenceReaderCountsTheSameEvents(t *testing.T) {
	call := regexp.MustCompile(`func_(entry|exit): .*\{ vtid = (\d+), vpid = (\d+), procname = "worker-\d" \}, \{ addr = (0x[0-9A-F]+), call_site = 0x[0-9A-F]+ \}$`)
	for _, contexts := range []bool{false, true} {
		dir := t.TempDir()
		counts, err := usttrace.Write(dir, usttrace.Options{Events: 20_000, Contexts: contexts, Seed: 1})
		require.NoError(t, err)
		require.GreaterOrEqual(t, counts.Events, 20_000)
		text, warnings := lttngdata.Babeltrace(t, dir)
		assert.Empty(t, warnings)
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		require.Len(t, lines, counts.Events)
		stacks, entries, exits, work := map[string][]string{}, 0, 0, 0
		for _, line := range lines {
			switch {
			case strings.Contains(line, " "+usttrace.ProviderWork+":"):
				work++
			case strings.Contains(line, ":func_entry:"):
				entries++
			case strings.Contains(line, ":func_exit:"):
				exits++
			}
			m := call.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			thread := m[3] + "/" + m[2]
			if m[1] == "entry" {
				stacks[thread] = append(stacks[thread], m[4])
				continue
			}
			depth := len(stacks[thread])
			require.NotZero(t, depth, line)
			require.Equal(t, stacks[thread][depth-1], m[4], line)
			stacks[thread] = stacks[thread][:depth-1]
		}
		assert.Equal(t, counts.Calls, entries)
		assert.Equal(t, counts.Calls, exits)
		assert.Equal(t, counts.Work, work)
		assert.Greater(t, work, counts.Events/20)
		for thread, stack := range stacks {
			assert.Empty(t, stack, thread)
		}
		assert.Equal(t, contexts, len(stacks) > 1)
	}
}

func TestTheReferenceReaderCountsTheEventsOfAKernel(t *testing.T) {
	dir := t.TempDir()
	counts, err := usttrace.WriteKernel(dir, usttrace.Options{Events: 20_000, Seed: 1})
	require.NoError(t, err)
	text, warnings := lttngdata.Babeltrace(t, dir)
	assert.Empty(t, warnings)
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	require.Len(t, lines, counts.Events)
	change := regexp.MustCompile(`sched_switch: \{ cpu_id = (\d) \}, .* prev_tid = (\d+), .* next_tid = (\d+), `)
	running, names := map[string]string{}, map[string]int{}
	for _, line := range lines {
		for _, name := range []string{"process_state", "sched_switch", "syscall_entry_", "syscall_exit_", "kmem_", "softirq_", "irq_handler_", "sched_waking"} {
			if strings.Contains(line, name) {
				names[name]++
			}
		}
		if m := change.FindStringSubmatch(line); m != nil {
			if before, known := running[m[1]]; known {
				require.Equal(t, before, m[2], line)
			}
			running[m[1]] = m[3]
		}
	}
	assert.Len(t, names, 8)
	assert.Len(t, running, 4)
	assert.Greater(t, names["sched_switch"], counts.Events/10)
}

// A full packet ends where the next one begins, as LTTng writes it: only such a packet shows that tracing was not stopped.
func TestFullPacketsHaveNoTimeBetweenThem(t *testing.T) {
	dir := t.TempDir()
	_, err := usttrace.Write(dir, usttrace.Options{Events: 30_000})
	require.NoError(t, err)
	b, err := os.ReadFile(filepath.Join(dir, "calls_0"))
	require.NoError(t, err)
	const packet, beginAt, endAt = 128 << 10, 32, 40
	require.Greater(t, len(b), packet)
	for ; len(b) > packet; b = b[packet:] {
		assert.Equal(t, binary.LittleEndian.Uint64(b[endAt:]), binary.LittleEndian.Uint64(b[packet+beginAt:]))
	}
}

func TestTheSameOptionsWriteTheSameBytes(t *testing.T) {
	written := func(seed uint64) map[string]string {
		dir, files := t.TempDir(), map[string]string{}
		_, err := usttrace.Write(dir, usttrace.Options{Events: 30_000, Contexts: true, Seed: seed})
		require.NoError(t, err)
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			b, err := os.ReadFile(filepath.Join(dir, e.Name()))
			require.NoError(t, err)
			files[e.Name()] = string(b)
		}
		return files
	}
	one := written(1)
	assert.Len(t, one, 9)
	assert.True(t, maps.Equal(one, written(1)))
	assert.False(t, maps.Equal(one, written(2)))
}

func TestATraceWithoutEventsIsAnError(t *testing.T) {
	_, err := usttrace.Write(t.TempDir(), usttrace.Options{})
	require.EqualError(t, err, "expected at least 1 event, got 0")
	_, err = usttrace.Write(filepath.Join(t.TempDir(), "none"), usttrace.Options{Events: 1})
	require.ErrorIs(t, err, os.ErrNotExist)
}
