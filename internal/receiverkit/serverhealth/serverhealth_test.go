// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package serverhealth

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/otel/metric"

	"github.com/callbraid/callbraid/internal/componentkit/ownmetrics"
	"github.com/callbraid/callbraid/internal/testkit/telemetrytest"
)

func TestTheStatusOfTheWorstPartIsReportedWhenItChanges(t *testing.T) {
	const recoverable, permanent, ok = "StatusRecoverableError: ", "StatusPermanentError: ", "StatusOK"
	refused := func(port int) error { return fmt.Errorf("dial 127.0.0.1:%d: refused", port) }
	silent := errors.New("silent")
	for name, tt := range map[string]struct {
		happens func(a, b, file *Part)
		said    []string
	}{
		"no part has a result":   {func(_, _, _ *Part) {}, nil},
		"one is up, as expected": {func(a, _, _ *Part) { a.Up() }, nil},
		"one fails, again and again": {func(a, _, _ *Part) {
			for port := range 5 {
				a.Failed(refused(50000 + port))
			}
		}, []string{recoverable + "1 of 3 failed: s:1: dial 127.0.0.1:50000: refused"}},
		"one fails, and is up again": {func(a, _, _ *Part) { a.Failed(silent); a.Up(); a.Up() },
			[]string{recoverable + "1 of 3 failed: s:1: silent", ok}},
		"one is up while another fails": {func(a, b, _ *Part) { a.Failed(silent); b.Up() },
			[]string{recoverable + "1 of 3 failed: s:1: silent"}},
		"two fail, and one is up again": {func(a, b, _ *Part) { a.Failed(silent); b.Failed(silent); a.Up() }, []string{
			recoverable + "1 of 3 failed: s:1: silent", recoverable + "2 of 3 failed: s:1: silent; s:2: silent",
			recoverable + "1 of 3 failed: s:2: silent",
		}},
		"the reason changes": {func(a, _, _ *Part) { a.Failed(refused(1)); a.Failed(silent) },
			[]string{recoverable + "1 of 3 failed: s:1: dial 127.0.0.1:1: refused", recoverable + "1 of 3 failed: s:1: silent"}},
		"one is given up, for good": {func(a, b, _ *Part) { a.Failed(silent); b.GivenUp(silent); a.Up(); b.Up() }, []string{
			recoverable + "1 of 3 failed: s:1: silent", permanent + "2 of 3 failed: s:1: silent; s:2: silent",
			permanent + "1 of 3 failed: s:2: silent",
		}},
		"a file can't be written, and is no longer needed": {func(_, _, file *Part) { file.Failed(silent); file.Remove() },
			[]string{recoverable + "1 of 3 failed: file: silent", ok}},
	} {
		t.Run(name, func(t *testing.T) {
			h, host := New(), telemetrytest.NewStatuses()
			a, b, file := h.Server("s:1"), h.Server("s:2"), h.Part("file")
			h.Start(host)
			tt.happens(a, b, file)
			assert.Equal(t, tt.said, host.All())
		})
	}
}

func TestAFailureBeforeTheStartIsReportedAtTheStart(t *testing.T) {
	h, host := New(), telemetrytest.NewStatuses()
	h.Part("file").Failed(errors.New("denied"))
	h.Start(host)
	assert.Equal(t, []string{"StatusRecoverableError: 1 of 1 failed: file: denied"}, host.All())
}

func TestAfterStopNoStatusIsReported(t *testing.T) {
	h, host := New(), telemetrytest.NewStatuses()
	s := h.Server("a:1")
	h.Start(host)
	h.Stop()
	s.Failed(errors.New("closed"))
	assert.Empty(t, host.All())
}

func TestAnErrorNamesOnlySomeOfManyFailedParts(t *testing.T) {
	h, host := New(), telemetrytest.NewStatuses()
	h.Start(host)
	for i := range 7 {
		h.Server(fmt.Sprint("s", i)).Failed(errors.New("no"))
	}
	assert.Equal(t, "StatusRecoverableError: 7 of 7 failed: s0: no; s1: no; s2: no; s3: no; s4: no; and 2 more", host.Last())
}

func TestTheGaugeHasAPointForEachConfiguredServer(t *testing.T) {
	h := New()
	a, b, gone := h.Server("a:1"), h.Server("b:2"), h.Server("c:3")
	h.Part("file").Up()
	telemetry := componenttest.NewTelemetry()
	defer func() { require.NoError(t, telemetry.Shutdown(context.Background())) }()
	settings := ownmetrics.Of(component.KindReceiver, component.MustNewID("any"), telemetry.NewTelemetrySettings())
	meter := settings.MeterProvider.Meter("")
	gauge, err := meter.Int64ObservableGauge("up")
	require.NoError(t, err)
	_, err = meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		return h.Observe(ctx, observed{o: o, gauge: gauge})
	}, gauge)
	require.NoError(t, err)
	points := func() map[string]int64 { return telemetrytest.Gauge(t, telemetry, "up") }
	assert.Equal(t, map[string]int64{"{server=a:1}": 0, "{server=b:2}": 0, "{server=c:3}": 0}, points(), "nothing is known")
	a.Up()
	b.Up()
	b.Failed(errors.New("lost"))
	gone.Remove()
	assert.Equal(t, map[string]int64{"{server=a:1}": 1, "{server=b:2}": 0}, points())
}

// observed observes one gauge.
type observed struct {
	metric.Int64Observer
	o     metric.Observer
	gauge metric.Int64ObservableGauge
}

func (o observed) Observe(value int64, options ...metric.ObserveOption) {
	o.o.ObserveInt64(o.gauge, value, options...)
}
