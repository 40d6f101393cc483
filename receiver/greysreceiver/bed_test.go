// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap/zaptest/observer"

	"crypto/tls"

	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/receivertestbed"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/metadata"
)

// patience is how long a test waits for an expected event.
const patience = time.Minute

// bed is a receiver with everything that it forwards and logs.
type bed struct {
	*receivertestbed.Bed
	receiver *greysReceiver
	// sumsNow are the sums of the first `summed` metrics.
	sumsNow map[int64][2]int64
	summed  int
}

// newBed returns a receiver that is not started. Its configuration is the default with short pauses, changed by set.
func newBed(t testing.TB, set func(c *Config)) *bed {
	t.Helper()
	b := &bed{Bed: receivertestbed.New(t, metadata.Type), sumsNow: map[int64][2]int64{}}
	config := createDefaultConfig()
	config.Servers = []ServerConfig{{Endpoint: "shop.example:3658"}}
	config.Timezone = "UTC" // results are the same on all machines
	config.StateInterval = time.Hour
	config.PerMethod = false // the pattern is sent unchanged
	config.RecursionCheck = 0
	config.CollectionInterval = time.Hour
	config.Reconnect = RetryConfig{InitialInterval: time.Millisecond, MaxInterval: 10 * time.Millisecond}
	config.Retry = RetryConfig{InitialInterval: time.Millisecond, MaxInterval: 20 * time.Millisecond}
	set(config)
	require.NoError(t, config.Validate())
	r, err := newReceiver(b.Settings, config)
	require.NoError(t, err)
	b.Use(r)
	b.receiver = r.Protocol.(*greysReceiver)
	return b
}

// start starts the receiver. The end of the test stops it.
func (b *bed) start() *bed {
	b.T.Helper()
	b.Start()
	return b
}

// open opens the outputs of a receiver without starting it.
func (b *bed) open() *receiverkit.Run {
	run := b.Kit().NewRun(b.T.Context(), b.Host, b.Next)
	b.receiver.open(run, make([]*tls.Config, len(b.receiver.env.config.Servers)))
	return run
}

// awaitLogged waits for a log line with a part of its message.
func (b *bed) awaitLogged(message string) observer.LoggedEntry {
	b.T.Helper()
	b.Await("log line "+message, func() bool { return b.Log.FilterMessageSnippet(message).Len() > 0 })
	return b.Log.FilterMessageSnippet(message).All()[0]
}

// point returns the value of one counter with its attributes.
func (b *bed) point(name string) int64 {
	b.T.Helper()
	return b.Points()[name]
}

// collect collects metrics of the living processes. No other goroutine may do that meanwhile.
func (b *bed) collect() pmetric.Metrics {
	b.T.Helper()
	states := b.receiver.living()
	return b.receiver.env.metrics.metrics(states, b.receiver.env.Now())
}

// values returns the points of a metric, by class and method, or by command and pattern.
func values(metrics pmetric.Metrics, name string) map[string]float64 {
	all := map[string]float64{}
	for _, resource := range metrics.ResourceMetrics().All() {
		for _, m := range resource.ScopeMetrics().At(0).Metrics().All() {
			if m.Name() != name {
				continue
			}
			var points pmetric.NumberDataPointSlice
			if m.Type() == pmetric.MetricTypeSum {
				points = m.Sum().DataPoints()
			} else {
				points = m.Gauge().DataPoints()
			}
			for _, p := range points.All() {
				key := ""
				for _, attribute := range []string{"greys.command", "greys.pattern", "code.function.name", "java.class"} {
					if v, ok := p.Attributes().Get(attribute); ok {
						key += " " + v.Str()
					}
				}
				value := p.DoubleValue()
				if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
					value = float64(p.IntValue())
				}
				all[key[min(1, len(key)):]] += value
			}
		}
	}
	return all
}
