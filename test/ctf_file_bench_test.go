// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/sim/usttrace"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/cputime"
	"github.com/callbraid/callbraid/internal/testkit/lttngdata"
	"github.com/callbraid/callbraid/test/kit"
)

// recordedEvents is the number of events in the traces, so many that a reader's start does not matter.
const recordedEvents = 3_000_000

// BenchmarkCTFFile reads recorded traces with babeltrace2, the reference reader, and with the distribution, whose next
// component discards all data. It measures the processor time of the whole process, with its start and end.
func BenchmarkCTFFile(b *testing.B) {
	b.Run("functions", func(b *testing.B) { benchmarkRecorded(b, usttrace.Write) })
	b.Run("kernel", func(b *testing.B) { benchmarkRecorded(b, usttrace.WriteKernel) })
}

func benchmarkRecorded(b *testing.B, write func(string, usttrace.Options) (usttrace.Counts, error)) {
	dir := b.TempDir()
	written, err := write(dir, usttrace.Options{Events: recordedEvents, Contexts: true})
	require.NoError(b, err)
	b.Run("babeltrace2Text", func(b *testing.B) { lttngdata.BenchmarkBabeltrace(b, written.Events, dir) })
	b.Run("logRecords", func(b *testing.B) { benchmarkCTFFile(b, written.Events, dir, "logs") })
	b.Run("babeltrace2Dummy", func(b *testing.B) { lttngdata.BenchmarkBabeltrace(b, written.Events, "-o", "dummy", dir) })
	b.Run("nothing", func(b *testing.B) { benchmarkCTFFile(b, written.Events, dir, "metrics") })
}

// benchmarkCTFFile runs the distribution with a pipeline of a signal. A pipeline of metrics gets no data of events.
func benchmarkCTFFile(b *testing.B, events int, dir, signal string) {
	config := filepath.Join(b.TempDir(), "config.yaml")
	require.NoError(b, os.WriteFile(config, fmt.Appendf(nil, `
receivers: {ctf_file: {include: [%q], mode: once, at_end: stop_collector}}
exporters: {nop: {}}
service:
  telemetry:
    metrics:
      readers:
        - pull:
            exporter:
              prometheus:
                host: localhost
                port: ${env:METRICS_PORT}
  pipelines: {%s: {receivers: [ctf_file], exporters: [nop]}}
`, dir, signal), 0o600))
	cputime.Command(b, events, func() *exec.Cmd {
		_, port, _ := strings.Cut(testkit.Address(b), ":")
		command := exec.CommandContext(b.Context(), kit.Binary(b), "--config", config)
		command.Env = append(os.Environ(), "METRICS_PORT="+port)
		return command
	})
}
