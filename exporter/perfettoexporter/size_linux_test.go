// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package perfettoexporter

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/testkit/cputime"
	"github.com/callbraid/callbraid/internal/testkit/perfettofile"
	"github.com/callbraid/callbraid/internal/testkit/traceprocessor"
)

const (
	// slicesVariable is the number of spans in the files.
	slicesVariable = "CALLBRAID_PERFETTO_SLICES"
	leastSlices    = 200_000
)

// Files of any number of spans need the same memory, and each of them opens alone. A call whose caller ended after the
// file did is outermost in it.
func TestFilesOfAnySizeNeedTheSameMemory(t *testing.T) {
	total, err := strconv.Atoi(cmp.Or(os.Getenv(slicesVariable), strconv.Itoa(leastSlices)))
	require.NoError(t, err, "%s is a number", slicesVariable)
	path := newFile(t)
	b := started(t, path, func(c *Config) {
		c.Rotation.MaxBackups = 10_000
		c.FlushInterval = time.Hour // on a slow machine the last file would have few calls, and not all threads
		if total <= leastSlices {
			c.Rotation.MaxMegabytes = 1
		}
	})

	calls := newCallsOfThreads(20_000)
	eachTime := calls.traces.SpanCount()
	rounds := (total + eachTime - 1) / eachTime
	half := [2]uint64{}
	used := cputime.Of(func() {
		for n := range rounds {
			require.NoError(t, b.consumeTraces(t.Context(), calls.traces))
			calls.moveOn()
			if n%max(1, rounds/50) == 0 {
				at := 2 * n / rounds
				half[at] = max(half[at], residentBytes(t))
			}
		}
	})
	require.NoError(t, b.signal.Shutdown(t.Context()))
	t.Logf("resident memory: at most %d MiB in the first half, and %d MiB in the second", half[0]/mib, half[1]/mib)
	assert.LessOrEqual(t, half[1], half[0]+16*mib)

	all := files(t, path)
	assert.Greater(t, len(all), 1)
	bytes := int64(0)
	for _, file := range all {
		info, err := os.Stat(file)
		require.NoError(t, err)
		bytes += info.Size()
	}
	spans := rounds * eachTime
	t.Logf("%d slices in %d files, %.2f bytes each, %.2f million in a second of processor time", spans, len(all), float64(bytes)/float64(spans), float64(spans)/used.Seconds()/1e6)
	t.Run("own reader", func(t *testing.T) {
		if total > leastSlices {
			t.Skipf("%d slices need too much memory", total)
		}
		got := 0
		for _, file := range all {
			read, err := perfettofile.Open(file)
			require.NoError(t, err)
			for _, s := range read.Slices {
				require.False(t, s.Open)
				if s.Parent != nil {
					require.Equal(t, depthOf(s.Parent.Name)+1, depthOf(s.Name))
				}
			}
			got += len(read.Slices)
		}
		assert.Equal(t, spans, got)
	})
	t.Run("trace_processor", func(t *testing.T) {
		traceprocessor.Require(t)
		got := 0
		for _, file := range all {
			const depthOf = "cast(substr(%[1]s, instr(%[1]s, '_') + 1) as int)"
			row := traceprocessor.Query(t, file, "select count(*), sum(s.parent_id is not null and "+fmt.Sprintf(depthOf, "p.name")+" + 1 != "+fmt.Sprintf(depthOf, "s.name")+
				"), sum(s.dur < 0), count(distinct s.track_id) from slice s left join slice p on p.id = s.parent_id")[0][0]
			n, err := strconv.Atoi(row[0])
			require.NoError(t, err)
			got += n
			assert.Equal(t, []string{"0", "0", fmt.Sprint(threadsOfCalls)}, row[1:], "wrong callers, open slices, and threads of %s", file)
		}
		assert.Equal(t, spans, got)
	})
}

// residentBytes is the memory of this process.
func residentBytes(t testing.TB) uint64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	require.NoError(t, err)
	pages, err := strconv.ParseUint(strings.Fields(string(text))[1], 10, 64)
	require.NoError(t, err)
	return pages * uint64(os.Getpagesize())
}
