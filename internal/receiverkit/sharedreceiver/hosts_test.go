// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package sharedreceiver

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/callbraid/callbraid/internal/testkit/telemetrytest"
)

// failing is a receiver that reports an error at its start.
type failing struct{ host component.Host }

func (f *failing) Start(_ context.Context, host component.Host, _ Signals) error {
	f.host = host
	componentstatus.ReportStatus(host, componentstatus.NewRecoverableErrorEvent(errors.New("away")))
	return nil
}

func (*failing) Shutdown(context.Context) error { return nil }

func TestEachSignalHasTheStatusOfTheReceiver(t *testing.T) {
	r := &failing{}
	shared := Once(r, Signals{})
	traces, logs := telemetrytest.NewStatuses(), telemetrytest.NewStatuses()
	for _, host := range []component.Host{traces, logs, componenttest.NewNopHost()} {
		require.NoError(t, shared.Start(t.Context(), host))
	}
	componentstatus.ReportStatus(r.host, componentstatus.NewEvent(componentstatus.StatusOK))
	want := []string{"StatusRecoverableError: away", "StatusOK"}
	assert.Equal(t, want, traces.All())
	assert.Equal(t, want, logs.All())
	require.NoError(t, shared.Shutdown(t.Context()))
}
