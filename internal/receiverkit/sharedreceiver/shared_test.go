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
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// config is a configuration. It is not empty, so that each has its own address.
type config struct{ _ int }

// counted is a receiver that counts its starts and shutdowns.
type counted struct {
	settings          receiver.Settings
	next              Signals
	starts, shutdowns int
	err               error
}

func (c *counted) Start(_ context.Context, _ component.Host, next Signals) error {
	c.starts++
	c.next = next
	return c.err
}

func (c *counted) Shutdown(context.Context) error {
	c.shutdowns++
	return c.err
}

// made has the receivers that a Shared has created, in order.
type made []*counted

func newShared(err error) (*Shared, *made) {
	all := &made{}
	return New(func(settings receiver.Settings, _ component.Config) (Receiver, error) {
		r := &counted{settings: settings, err: err}
		*all = append(*all, r)
		return r, nil
	}), all
}

func nopSettings() receiver.Settings {
	return receivertest.NewNopSettings(component.MustNewType("any"))
}

func TestThereIsOneReceiverForAllSignalsOfAConfiguration(t *testing.T) {
	ctx, settings, one, other := t.Context(), nopSettings(), &config{}, &config{}
	shared, all := newShared(nil)
	traces, err := shared.CreateTraces(ctx, settings, one, consumertest.NewNop())
	require.NoError(t, err)
	logs, err := shared.CreateLogs(ctx, settings, one, consumertest.NewNop())
	require.NoError(t, err)
	metrics, err := shared.CreateMetrics(ctx, settings, one, consumertest.NewNop())
	require.NoError(t, err)
	profiles, err := shared.CreateProfiles(ctx, settings, one, consumertest.NewNop())
	require.NoError(t, err)
	assert.Same(t, traces, logs)
	assert.Same(t, traces, metrics)
	assert.Same(t, traces, profiles)
	second, err := shared.CreateLogs(ctx, settings, other, consumertest.NewNop())
	require.NoError(t, err)
	assert.NotSame(t, traces, second)
	require.Len(t, *all, 2)

	for _, r := range []component.Component{traces, logs, metrics, profiles} {
		require.NoError(t, r.Start(ctx, componenttest.NewNopHost()))
	}
	for _, r := range []component.Component{traces, logs, metrics, profiles, profiles} {
		require.NoError(t, r.Shutdown(ctx))
	}
	first := (*all)[0]
	assert.Equal(t, 1, first.starts)
	assert.Equal(t, 1, first.shutdowns)
	assert.NotNil(t, first.next.Traces)
	assert.NotNil(t, first.next.Logs)
	assert.NotNil(t, first.next.Metrics)
	assert.NotNil(t, first.next.Profiles)
	assert.Zero(t, (*all)[1].starts)

	// After a reload the same configuration makes another receiver.
	again, err := shared.CreateTraces(ctx, settings, one, consumertest.NewNop())
	require.NoError(t, err)
	assert.NotSame(t, traces, again)
	assert.Len(t, *all, 3)
	// The other configuration has the same receiver as before.
	same, err := shared.CreateTraces(ctx, settings, other, consumertest.NewNop())
	require.NoError(t, err)
	assert.Same(t, second, same)
}

func TestStartHasNoConsumerForSignalsWithoutAPipeline(t *testing.T) {
	ctx := t.Context()
	shared, all := newShared(nil)
	logs, err := shared.CreateLogs(ctx, nopSettings(), &config{}, consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, logs.Start(ctx, componenttest.NewNopHost()))
	next := (*all)[0].next
	assert.Nil(t, next.Traces)
	assert.NotNil(t, next.Logs)
	assert.Nil(t, next.Metrics)
	assert.Nil(t, next.Profiles)
}

func TestAReceiverThatWasNotStartedIsShutDown(t *testing.T) {
	ctx := t.Context()
	shared, all := newShared(nil)
	traces, err := shared.CreateTraces(ctx, nopSettings(), &config{}, consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, traces.Shutdown(ctx))
	assert.Equal(t, 1, (*all)[0].shutdowns)
	assert.Zero(t, (*all)[0].starts)
}

func TestEverySignalGetsTheError(t *testing.T) {
	ctx, failed := t.Context(), errors.New("the port is in use")
	shared, all := newShared(failed)
	traces, err := shared.CreateTraces(ctx, nopSettings(), &config{}, consumertest.NewNop())
	require.NoError(t, err)
	for range 2 {
		assert.ErrorIs(t, traces.Start(ctx, componenttest.NewNopHost()), failed)
	}
	for range 2 {
		assert.ErrorIs(t, traces.Shutdown(ctx), failed)
	}
	assert.Equal(t, 1, (*all)[0].starts)
	assert.Equal(t, 1, (*all)[0].shutdowns)
}

func TestAReceiverThatCannotBeCreatedIsTriedAgain(t *testing.T) {
	ctx, wrong, one := t.Context(), errors.New("wrong"), &config{}
	tries := 0
	shared := New(func(receiver.Settings, component.Config) (Receiver, error) {
		tries++
		return nil, wrong
	})
	for range 2 {
		r, err := shared.CreateTraces(ctx, nopSettings(), one, consumertest.NewNop())
		assert.ErrorIs(t, err, wrong)
		assert.Nil(t, r)
	}
	assert.Equal(t, 2, tries)
}

// signalCore is the core of a logger that names a signal in every line, as that of the Collector does.
type signalCore struct {
	zapcore.Core
	dropped *[]string
}

func (c signalCore) DropInjectedAttributes(names ...string) zapcore.Core {
	*c.dropped = append(*c.dropped, names...)
	return c.Core
}

func TestLogLinesNameNoSignal(t *testing.T) {
	var dropped []string
	settings := nopSettings()
	settings.Logger = zap.New(signalCore{Core: zapcore.NewNopCore(), dropped: &dropped})
	shared, all := newShared(nil)
	_, err := shared.CreateTraces(t.Context(), settings, &config{}, consumertest.NewNop())
	require.NoError(t, err)
	assert.Equal(t, []string{"otelcol.signal", "otelcol.signal.output"}, dropped)
	assert.Equal(t, zapcore.NewNopCore(), (*all)[0].settings.Logger.Core())
}
