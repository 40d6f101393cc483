// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/plogtest"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/pmetrictest"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/ptracetest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/rbkit/sim/capture"
	"github.com/callbraid/callbraid/internal/rbkit/sim/rbkitserver"
	"github.com/callbraid/callbraid/internal/rbkit/zmtp"
	"github.com/callbraid/callbraid/internal/testkit/profiletest"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/origin"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/process"
)

// update writes the golden files again: go test -run Golden -update. testdata/golden/README.md
// explains their content.
var update = flag.Bool("update", false, "write the golden files again")

// mapped is the pdata of a capture, without sockets.
type mapped struct {
	metrics  pmetric.Metrics
	spans    ptrace.Traces
	logs     plog.Logs
	profiles []pprofile.Profiles
	state    process.State
}

// recorded is the begin of all captures. Messages arrive from then on.
var recorded = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

// mapCapture handles the messages of a capture at the times of their arrival.
func mapCapture(t testing.TB, c *capture.Capture, options ...option) mapped {
	t.Helper()
	b, s := alone(t, options...)
	env, now, hello := b.receiver.out, recorded, rbkitserver.Hello(c)
	env.Now = func() time.Time { return now }
	s.Begin(origin.Identity{State: &hello})
	for _, m := range c.Messages {
		now = recorded.Add(m.At)
		s.Receive(zmtp.Message{m.Data})
	}
	b.finish(s)
	got := mapped{state: stateOf(s)}
	got.metrics = env.metrics.metrics([]process.State{got.state}, now)
	got.spans, got.logs, got.profiles = ptrace.NewTraces(), plog.NewLogs(), b.Profiles.AllProfiles()
	for _, traces := range b.Traces.AllTraces() {
		// How many go together is a matter of time.
		resource := traces.ResourceSpans().At(0)
		if got.spans.ResourceSpans().Len() == 0 {
			resource.MoveTo(got.spans.ResourceSpans().AppendEmpty())
			continue
		}
		to := got.spans.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
		resource.ScopeSpans().At(0).Spans().MoveAndAppendTo(to)
	}
	for _, logs := range b.Logs.AllLogs() {
		logs.ResourceLogs().MoveAndAppendTo(got.logs.ResourceLogs())
	}
	return got
}

func TestGoldenCaptures(t *testing.T) {
	for name, c := range map[string]*capture.Capture{
		"released-30s":   openCapture(t, "released-30s"),
		"documented-30s": openCapture(t, "documented-30s"),
		"snapshot":       only(openCapture(t, "samples"), "documented-watch-with-allocation_snapshot"),
	} {
		t.Run(name, func(t *testing.T) {
			got := mapCapture(t, c)
			file := func(signal string) string { return filepath.Join("testdata", "golden", name, signal) }
			folded := profiletest.Fold(got.profiles)
			if *update {
				require.NoError(t, os.MkdirAll(file(""), 0o755))
				require.NoError(t, golden.WriteMetricsToFile(file("metrics.yaml"), got.metrics, golden.SkipMetricTimestampNormalization()))
				require.NoError(t, golden.WriteTracesToFile(file("spans.yaml"), got.spans))
				require.NoError(t, golden.WriteLogsToFile(file("logs.yaml"), got.logs))
				require.NoError(t, os.WriteFile(file("profiles.txt"), []byte(folded), 0o644))
			}
			metrics, err := golden.ReadMetrics(file("metrics.yaml"))
			require.NoError(t, err)
			assert.NoError(t, pmetrictest.CompareMetrics(metrics, got.metrics,
				pmetrictest.IgnoreMetricsOrder(), pmetrictest.IgnoreMetricDataPointsOrder()))
			spans, err := golden.ReadTraces(file("spans.yaml"))
			require.NoError(t, err)
			assert.NoError(t, ptracetest.CompareTraces(spans, got.spans))
			logs, err := golden.ReadLogs(file("logs.yaml"))
			require.NoError(t, err)
			assert.NoError(t, plogtest.CompareLogs(logs, got.logs))
			profiles, err := os.ReadFile(file("profiles.txt"))
			require.NoError(t, err)
			assert.Equal(t, string(profiles), folded)
		})
	}
}

// only is a capture with one of its messages.
func only(c *capture.Capture, message string) *capture.Capture {
	c.Messages = slices.DeleteFunc(c.Messages, func(m capture.Message) bool { return m.Name != message })
	c.Replies = slices.DeleteFunc(c.Replies, func(m capture.Message) bool { return !strings.HasPrefix(m.Name, "documented-watch") })
	return c
}
