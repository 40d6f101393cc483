// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package receivertestbed is the test bed of a receiver: the settings and the host of a collector,
// the pipelines that the receiver delivers to, and its log lines and metrics.
//
// A receiver's bed_test.go embeds a Bed, makes the receiver of Bed.Settings, and passes it to
// Bed.Use:
//
//	b := &bed{Bed: receivertestbed.New(t, metadata.Type)}
//	r, err := newReceiver(b.Settings, config)
//	require.NoError(t, err)
//	b.receiver = r.Protocol.(*rbkitReceiver)
//	b.Use(r)
//	b.Start()
package receivertestbed

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/sharedreceiver"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/telemetrytest"
)

// Patience is how long a test waits for a condition, however busy the machine is.
const Patience = time.Minute

// Version is the version of the collector in Bed.Settings.
const Version = "v1.2.3"

// Bed has a receiver with everything that it delivers, logs and counts.
type Bed struct {
	T testing.TB
	// Settings are for newReceiver.
	Settings receiver.Settings
	// Traces, Logs, Metrics and Profiles are the pipelines.
	Traces   *Traces
	Logs     *Logs
	Metrics  *Metrics
	Profiles *Profiles
	// Next has the pipelines that the receiver gets at Start: all of them, unless a test
	// changes that. To get spans of call events, a test sets Next.Traces to a started stack_pairing
	// processor with a sink behind it.
	Next sharedreceiver.Signals
	// Host is the host of Start; without extensions, unless a test changes that.
	Host component.Host
	// Log has all log lines.
	Log *observer.ObservedLogs
	// Telemetry has the receiver's own metrics.
	Telemetry *componenttest.Telemetry

	shared component.Component
	kit    *receiverkit.Kit
	use    *receiverkit.Receiver
	prefix string
}

// New returns a bed for a receiver of a type. It ends with the test.
func New(t testing.TB, of component.Type) *Bed {
	t.Helper()
	core, log := observer.New(zapcore.DebugLevel)
	b := &Bed{
		T: t, Traces: new(Traces), Logs: new(Logs), Metrics: new(Metrics), Profiles: new(Profiles),
		Host: componenttest.NewNopHost(), Log: log, Telemetry: componenttest.NewTelemetry(),
		prefix: "otelcol_receiver_" + of.String() + "_",
	}
	t.Cleanup(func() { assert.NoError(t, b.Telemetry.Shutdown(context.Background())) })
	b.Next = sharedreceiver.Signals{Traces: b.Traces, Logs: b.Logs, Metrics: b.Metrics, Profiles: b.Profiles}
	b.Settings = receiver.Settings{
		ID:                receivertest.NewNopSettings(of).ID,
		TelemetrySettings: b.Telemetry.NewTelemetrySettings(),
	}
	b.Settings.Logger = zap.New(core)
	b.Settings.BuildInfo.Version = Version
	return b
}

// Use sets the receiver of the bed. Results are the same on all machines, because Use replaces the
// name of this machine.
func (b *Bed) Use(r *receiverkit.Receiver) {
	b.use, b.kit = r, r.Kit
	b.kit.Host = ""
}

// Kit returns the kit of the receiver.
func (b *Bed) Kit() *receiverkit.Kit { return b.kit }

// Component returns the receiver as the collector has it, with the pipelines of Next as they
// are at the first call.
func (b *Bed) Component() component.Component {
	if b.shared == nil {
		b.shared = sharedreceiver.Once(b.use, b.Next)
	}
	return b.shared
}

// Start starts the receiver. Shutdown follows at the end of the test at the latest.
func (b *Bed) Start() {
	b.T.Helper()
	require.NoError(b.T, b.Component().Start(context.Background(), b.Host))
	b.T.Cleanup(b.Shutdown)
}

// Shutdown shuts the receiver down, once.
func (b *Bed) Shutdown() {
	b.T.Helper()
	assert.NoError(b.T, b.Component().Shutdown(context.Background()))
}

// Await waits for a condition, and fails with all log lines.
func (b *Bed) Await(what string, condition func() bool) {
	b.T.Helper()
	if assert.True(b.T, testkit.Happens(condition), "waited for %s", what) {
		return
	}
	for _, entry := range b.Log.All() {
		b.T.Log(entry.Level, entry.Message, entry.ContextMap())
	}
	b.T.FailNow()
}

// AwaitLine waits for a log line with a message, and returns the first one.
func (b *Bed) AwaitLine(message string) observer.LoggedEntry {
	b.T.Helper()
	b.Await("log line "+message, func() bool { return b.Log.FilterMessage(message).Len() > 0 })
	return b.Log.FilterMessage(message).All()[0]
}

// Lines returns how often a log line was written for operators: above the level debug.
func (b *Bed) Lines(message string) int {
	visible := func(entry observer.LoggedEntry) bool { return entry.Level > zapcore.DebugLevel }
	return b.Log.FilterMessage(message).Filter(visible).Len()
}

// Counter returns the sum of one of the receiver's own counters over all attributes. The name
// has no prefix of the receiver.
func (b *Bed) Counter(name string) int64 {
	b.T.Helper()
	return telemetrytest.Sum(b.T, b.Telemetry, b.prefix+name)
}

// Points returns the points of all of the receiver's own counters that aren't 0, such as
// dumps{objects=complete}.
func (b *Bed) Points() map[string]int64 {
	b.T.Helper()
	return telemetrytest.Points(b.T, b.Telemetry, b.prefix)
}
