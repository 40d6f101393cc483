// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/testkit"
)

func TestTheSummaryAddsUp(t *testing.T) {
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "calls"}, {Type: "errors"}, {Type: "time"}}}
	path := func(calls, errors, self int64, names ...string) {
		sample := &profile.Sample{Value: []int64{calls, errors, self * int64(time.Millisecond)}}
		for _, name := range names { // from the callee on
			sample.Location = append(sample.Location, &profile.Location{Line: []profile.Line{{Function: &profile.Function{Name: name}}}})
		}
		p.Sample = append(p.Sample, sample)
	}
	path(1, 0, 30, "main (truncated)")
	path(2, 0, 25, "work", "main")
	path(3, 1, 20, "work", "work", "main")
	path(1, 1, 5, "leaf", "work", "main")
	path(0, 0, 20, "rest", "main")

	s, err := newSummary(p)
	require.NoError(t, err)
	var out strings.Builder
	require.NoError(t, s.print(&out))
	assert.Equal(t, `      calls  7
    methods  4
      paths  4  from main, or the first method of a thread, to a method
     errors  2  left by an exception
  truncated  1  open when the program ended

The 10 methods with most self time (without the methods they call):

   self   total  calls  errors  method
  45 ms   50 ms      5       1  work
  30 ms  100 ms      1       0  main
  20 ms   20 ms      0       0  rest
   5 ms    5 ms      1       1  leaf
`, out.String())

	p.SampleType[2].Type = "cpu"
	_, err = newSummary(p)
	assert.ErrorContains(t, err, "expected a profile with values of the type time, got none")
}

func TestAPortInUseIsAClearError(t *testing.T) {
	listener, err := net.Listen("tcp", testkit.Address(t))
	require.NoError(t, err)
	address := listener.Addr().String()
	assert.ErrorContains(t, checkFree(address), address+" is in use: end the program that listens there")
	require.NoError(t, listener.Close())
	assert.NoError(t, checkFree(address))
}

func TestAFailureShowsTheLinesThatAreNoProgress(t *testing.T) {
	log := filepath.Join(t.TempDir(), "collector.log")
	text := "2026\tinfo\tStarting\n2026\terror\tFailed\t" + strings.Repeat("x", 1000) +
		"\n2026\tinfo\tStopping\nError: listen tcp 127.0.0.1:8889: bind: address already in use\n"
	require.NoError(t, os.WriteFile(log, []byte(text), 0o644))
	err := (&collector{log: log}).failure("the collector did not start")
	assert.ErrorContains(t, err, "the collector did not start: a port is in use by another process; its log is "+log)
	assert.ErrorContains(t, err, "\n    Error: listen tcp 127.0.0.1:8889: bind: address already in use")
	assert.ErrorContains(t, err, "xxx…\n")
	assert.NotContains(t, err.Error(), "Starting")
}
