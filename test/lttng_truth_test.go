// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/testkit/lttng"
)

// The record that a traced program writes itself is the truth for the comparison with its spans.

// truth is a program's own record: the calls of each of its threads in the order of entry. The key of a thread is its
// ID in C programs, and its name in Java programs.
type truth map[string][]call

// call is a call of a function.
type call struct {
	function string
	// depth is the number of open calls at its entry.
	depth int
	// thrown is set if an exception ended it.
	thrown bool
	// For C programs: the tracer's entry is between entered[0] and entered[1], and its exit between left[0] and
	// left[1], in nanoseconds of the monotonic clock.
	entered, left [2]int64
}

// readTruth reads the record of a program that has ended. others counts the entries that are not calls, by text.
func readTruth(t *testing.T, p *lttng.Program) (calls truth, others map[string]int) {
	t.Helper()
	file, err := os.Open(p.Truth)
	require.NoError(t, err)
	defer file.Close()
	calls, others = truth{}, map[string]int{}
	open := map[string][]int{}
	before := map[string]int64{}
	left := map[string]*call{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 3 {
			require.Fail(t, "expected thread, what and function", lines.Text())
		}
		thread, what, function := fields[0], fields[1], fields[2]
		var now int64
		if len(fields) > 3 {
			if now, err = strconv.ParseInt(fields[3], 10, 64); err != nil {
				require.NoError(t, err)
			}
		}
		if last := left[thread]; last != nil {
			last.left[1] = now
			left[thread] = nil
		}
		stack := open[thread]
		switch what {
		case ">":
			open[thread] = append(stack, len(calls[thread]))
			calls[thread] = append(calls[thread], call{
				function: function, depth: len(stack), entered: [2]int64{before[thread], now}, left: [2]int64{math.MaxInt64, math.MaxInt64},
			})
		case "<", "!":
			c := &calls[thread][stack[len(stack)-1]]
			if c.function != function {
				require.Fail(t, "expected "+c.function+" to be left first", lines.Text())
			}
			c.thrown, c.left[0] = what == "!", now
			open[thread], left[thread] = stack[:len(stack)-1], c
		default:
			others[function]++
		}
		before[thread] = now
	}
	for thread, stack := range open {
		require.Empty(t, stack, "thread %s is in no function at its end", thread)
	}
	return calls, others
}

// count returns the number of calls.
func (t truth) count() (n int) {
	for _, calls := range t {
		n += len(calls)
	}
	return n
}

// String returns the parts of a call that are compared with a span.
func (c call) String() string {
	thrown := ""
	if c.thrown {
		thrown = ", thrown"
	}
	return fmt.Sprintf("%s at depth %d%s", c.function, c.depth, thrown)
}

// threadOf returns the key of a thread in a truth.
func (s *span) threadOf(java bool) string {
	if java {
		return s.threadName
	}
	return strconv.FormatInt(s.thread, 10)
}

// calls returns the calls in the spans of one process, by thread as in a truth, in the order of entry. A span without
// parent has depth 0.
func (e *exported) calls(java bool) truth {
	slices.SortFunc(e.spans, func(a, b span) int { return cmp.Compare(a.sequence, b.sequence) })
	depths := map[string]int{}
	calls := truth{}
	for i := range e.spans {
		s := &e.spans[i]
		parent := s.parent
		for _, l := range s.links {
			parent = l.id // in another trace
		}
		depth := 0
		if !parent.IsEmpty() {
			depth = depths[parent.String()] + 1
		}
		depths[s.id.String()] = depth
		calls[s.threadOf(java)] = append(calls[s.threadOf(java)], call{function: s.function, depth: depth, thrown: s.status == ptrace.StatusCodeError})
	}
	return calls
}

// ofProcess returns the call streams of a process, by pid and session.
func (s streams) ofProcess(pid int, session string) (found []*exported) {
	for _, e := range s {
		if e.resource["process.pid"] == int64(pid) && e.resource["lttng.session.name"] == session {
			found = append(found, e)
		}
	}
	return found
}

// requireAll requires that the spans of a program in a session equal its calls, in the same order and nesting.
func requireAll(t *testing.T, s streams, p *lttng.Program, session string) {
	t.Helper()
	want, _ := readTruth(t, p)
	found := s.ofProcess(p.PID, session)
	require.Len(t, found, 1, "call streams of process %d in session %s", p.PID, session)
	e := found[0]
	got := e.calls(strings.HasSuffix(p.Path, "Calls"))
	require.Len(t, e.spans, want.count())
	require.Len(t, got, len(want), "threads")
	for thread, calls := range want {
		requireThread(t, thread, calls, got)
	}
	i := slices.IndexFunc(e.spans, func(s span) bool { return s.isTruncated })
	if i >= 0 {
		require.Fail(t, "no call was left unfinished", "%+v", e.spans[i])
	}
}

// requireThread requires that all calls of a thread are there.
func requireThread(t *testing.T, thread string, want []call, got truth) {
	t.Helper()
	require.Len(t, got[thread], len(want), "thread %s", thread)
	for i, w := range want {
		if g := got[thread][i]; w.function != g.function || w.depth != g.depth || w.thrown != g.thrown {
			require.Equal(t, w.String(), g.String(), "thread %s, call %d", thread, i)
		}
	}
}

// threads returns the threads of C programs in the order of their start.
func (t truth) threads() []string {
	return slices.SortedFunc(maps.Keys(t), func(a, b string) int { return cmp.Compare(t[a][0].entered[1], t[b][0].entered[1]) })
}

// requireNothingWrong requires that each span of a program with its own entry and exit is a call of the program. It
// returns the number of these spans. offsets are those of the traces that may contain them.
func requireNothingWrong(t *testing.T, s streams, p *lttng.Program, session string, offsets []int64) (whole int) {
	t.Helper()
	calls, _ := readTruth(t, p)
	for _, e := range s.ofProcess(p.PID, session) {
		var errs []error
		for _, offset := range offsets {
			n, err := e.wrong(calls, offset, nil)
			if err == nil {
				whole += n
				errs = nil
				break
			}
			errs = append(errs, err)
		}
		require.NoError(t, errors.Join(errs...))
	}
	return whole
}

// wrong returns an error with the first span that is no call, and counts the spans that are not truncated.
//
// A thread records each entry after the tracer and each exit before it. So at most one event of its calls is between
// two records: the time of a span's begin identifies one call, and its end must belong to the same one. offset
// converts times of the monotonic clock to times of the trace.
//
// If the relay daemon withheld the state of the process, no address has a name. Then only times are compared. Spans of a
// thread that share a time with one of its doubtful periods are left out.
func (e *exported) wrong(calls truth, offset int64, doubtful map[string][]period) (whole int, err error) {
	isNamed := slices.ContainsFunc(e.spans, func(s span) bool { return !strings.HasPrefix(s.function, "0x") })
	for i := range e.spans {
		s := &e.spans[i]
		thread := s.threadOf(false)
		if s.isTruncated || slices.ContainsFunc(doubtful[thread], period{s.start, s.end}.overlaps) {
			continue
		}
		whole++
		begin, end := s.start-offset, s.end-offset
		of := calls[thread]
		at, _ := slices.BinarySearchFunc(of, begin, func(c call, begin int64) int { return cmp.Compare(c.entered[1], begin) })
		if at == len(of) {
			return whole, fmt.Errorf("no call was entered as late as %+v", *s)
		}
		if c := of[at]; isNamed && c.function != s.function || begin < c.entered[0] || end < c.left[0] || end > c.left[1] {
			return whole, fmt.Errorf("%d to %d is not %s, entered in %d and left in %d: %+v", begin, end, c, c.entered, c.left, *s)
		}
	}
	return whole, nil
}
