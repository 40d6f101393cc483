// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/metadata"
)

const formatRbkit = "rbkit"

// handoverSettings is what hand-overs of all signals have in common.
func (e *environment) handoverSettings() handover.Settings {
	return handover.Settings{
		Context: e.ctx, Observer: e.observer, Format: formatRbkit, Logger: e.logger,
		Retry: e.config.Retry, Now: e.now, Memory: e.memory,
	}
}

// What a server publishes is gone if nobody reads it, so nobody waits for a pipeline:
// what its queue has no room for is dropped and counted, each signal for itself.

// cyclesAtOnce is how many are handed on at once.
const cyclesAtOnce = 256

func newSpans(e *environment, next consumer.Traces) *handover.Spans[cycleParcel] {
	return handover.NewSpans(next, handover.QueueSettings[cycleParcel, ptrace.Traces]{
		Settings: e.handoverSettings(),
		MaxItems: e.config.Limits.MaxQueuedSpans, MaxBytes: e.config.Limits.MaxQueuedSpanBytes,
		MaxAtOnce: cyclesAtOnce,
		Size:      func(*cycleParcel) (spans, bytes int) { return spansOfCycle, bytesOfCycle },
		Make:      e.traces,
		Dropped:   e.telemetry.spansDropped,
	})
}

func newLogSink(e *environment, next consumer.Logs) *handover.Logs[logParcel] {
	return handover.NewLogs(next, handover.QueueSettings[logParcel, plog.Logs]{
		Settings: e.handoverSettings(),
		MaxItems: e.config.Limits.MaxQueuedLogs, MaxBytes: e.config.Limits.MaxQueuedLogBytes,
		MaxAtOnce: 1,
		Size:      func(p *logParcel) (records, bytes int) { return p.records, p.bytes },
		Make:      func(parcels []logParcel) plog.Logs { return parcels[0].logs },
		Dropped:   e.telemetry.logRecordsDropped,
	})
}

func newProfileSink(e *environment, next xconsumer.Profiles) *handover.Profiles[profileParcel] {
	return handover.NewProfiles(next, handover.QueueSettings[profileParcel, pprofile.Profiles]{
		Settings: e.handoverSettings(),
		MaxItems: e.config.Limits.MaxQueuedSamples, MaxBytes: e.config.Limits.MaxQueuedSampleBytes,
		MaxAtOnce: 1,
		Size:      func(p *profileParcel) (samples, bytes int) { return p.samples, p.bytes },
		Make:      func(parcels []profileParcel) pprofile.Profiles { return parcels[0].profiles },
		Dropped:   e.telemetry.samplesDropped,
	})
}

func (e *environment) setScope(scope pcommon.InstrumentationScope) {
	scope.SetName(metadata.ScopeName)
	scope.SetVersion(e.build.Version)
}
