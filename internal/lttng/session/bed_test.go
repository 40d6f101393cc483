// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/callstream"
	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/lttng/position"
	"github.com/callbraid/callbraid/internal/lttng/process"
	"github.com/callbraid/callbraid/internal/lttng/symbols"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/internal/receiverkit/serverhealth"
)

const kib, mib = 1 << 10, 1 << 20

const scopeName = "github.com/callbraid/callbraid/receiver/lttnglivereceiver"

// uncounted is a Telemetry that counts nothing.
type uncounted struct{}

func (uncounted) CallStreams(int64)               {}
func (uncounted) CallEventsPacked(int64)          {}
func (uncounted) CallEventsDropped(int64, string) {}
func (uncounted) BatchDropped(int, string)        {}
func (uncounted) CallValuesCut(int64)             {}
func (uncounted) Break(callevent.Cause)           {}
func (uncounted) NamesForgotten(int64)            {}
func (uncounted) NameUnknown()                    {}
func (uncounted) LineUnknown(string)              {}
func (uncounted) ObjectRefused()                  {}
func (uncounted) Sessions(int64)                  {}
func (uncounted) SessionDetached(string)          {}
func (uncounted) ConnectionFailed()               {}
func (uncounted) BadData(string)                  {}
func (uncounted) Streams(int64)                   {}
func (uncounted) StreamCut()                      {}
func (uncounted) Received(int64, int64)           {}
func (uncounted) PacketsLost(int64)               {}
func (uncounted) Cleared()                        {}
func (uncounted) EventsRead(int64)                {}
func (uncounted) EventsLate(int64)                {}
func (uncounted) EventsDiscarded(int64)           {}
func (uncounted) LogValuesLeftOut(int64)          {}
func (uncounted) LogRecordsDropped(int, string)   {}
func (uncounted) BatchAccepted()                  {}
func (uncounted) HandoverRetried()                {}
func (uncounted) SymbolFileRefused()              {}

// newEnvironment returns an environment with the receiver's default settings. Batches are delivered to traces, unless
// that is nil. No pipeline accepts log records.
func newEnvironment(t testing.TB, traces consumer.Traces) *Environment {
	t.Helper()
	health := serverhealth.New()
	counters := uncounted{}
	env := &Environment{
		Settings: Settings{
			Endpoint: "localhost:5344", MaxDelay: 5 * time.Second,
			Reconnect: backoff.Config{InitialInterval: 200 * time.Millisecond, MaxInterval: 30 * time.Second},
			Limits:    Limits{Streams: 4096, PacketBytes: 64 * mib, MetadataBytes: 16 * mib, SessionMetadataBytes: 128 * mib, WaitingBytes: 64 * mib},
		},
		Process: &process.Settings{
			NameWait: time.Second, Traces: traces != nil, Telemetry: counters, Now: time.Now,
			Calls: callstream.Settings{
				TextKey: process.AttributeText, MaxBytes: 256 * kib, MaxDelay: 200 * time.Millisecond, KeepaliveInterval: 10 * time.Second, Now: time.Now,
			},
			Limits: process.Limits{Processes: 1024, NamesBytes: 128 * mib, ObjectsBytes: 64 * mib, WaitingEvents: 100_000},
		},
		Logger: zap.NewNop(), Telemetry: counters, Health: health, Positions: position.NewStore(zap.NewNop(), nil),
		Memory: budget.Of(nil).Group("lttng_live"), Ended: func(State) {},
		Serving: context.Background(), Leaving: context.Background(), Delivering: context.Background(), Now: time.Now,
	}
	settings := handoverSettings(t, env)
	if traces == nil {
		traces = consumertest.NewNop()
	} else {
		files, err := symbols.NewFiles(symbols.DefaultSettings())
		require.NoError(t, err)
		env.Process.Files = files
	}
	env.NewBatches = func(context.Context, *zap.Logger) process.Batches {
		return handover.NewBatches(handover.BatchesSettings{
			Settings: settings, Next: traces, ScopeName: scopeName, TryLate: true,
			Accepted: func() {}, Dropped: counters.BatchDropped, Retried: func() {},
		})
	}
	return env
}

func handoverSettings(t testing.TB, env *Environment) handover.Settings {
	t.Helper()
	observer, err := handover.NewObserver(receivertest.NewNopSettings(component.MustNewType("lttng_live")), "tcp")
	require.NoError(t, err)
	return handover.Settings{
		Context: env.Delivering, Observer: observer, Format: "lttng", Logger: env.Logger,
		Retry: backoff.Config{InitialInterval: 50 * time.Millisecond, MaxInterval: time.Second}, Now: env.Now, Memory: env.Memory,
	}
}

// newSession returns a session that delivers batches without being attached.
func newSession(env *Environment, listed lttnglive.Session) *Session {
	s := New(env, listed)
	s.recording.group.SetBatches(env.NewBatches(env.Delivering, env.Logger))
	return s
}
