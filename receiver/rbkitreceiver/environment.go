// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"context"
	"net"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/eventswitch"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
)

type dialFunc func(ctx context.Context, address string) (net.Conn, error)

// environment is what all servers share.
type environment struct {
	*receiverkit.Run
	config *Config
	// eventsOff are the log records that are switched off, by their event names.
	eventsOff map[string]bool
	telemetry *telemetry
	dial      dialFunc
	// spans, logs and profiles are nil if no pipeline takes them.
	spans    *handover.Spans[cycleParcel]
	logs     *handover.Logs[logParcel]
	profiles *handover.Profiles[profileParcel]
	metrics  *metricsLoop
	// measured says that a pipeline takes metrics. Nothing else needs objects that are
	// created and destroyed.
	measured bool
}

// maxCyclesAtOnce bounds the garbage collections of one delivery.
const maxCyclesAtOnce = 256

// newEnvironment opens the outputs of each signal that has a pipeline. Data that a server
// publishes is lost if the receiver doesn't read it, so the receiver never waits for a
// pipeline. Each queue drops and counts what it has no room for.
func newEnvironment(run *receiverkit.Run, config *Config, telemetry *telemetry, dial dialFunc) *environment {
	e := &environment{
		Run: run, config: config, telemetry: telemetry, dial: dial,
		eventsOff: eventswitch.Off(config.Events), measured: run.Next.Metrics != nil,
	}
	limits, counters := &config.Limits, telemetry.builder
	e.spans = receiverkit.NewSpans(run, limits.SpanLimits, handover.QueueSettings[cycleParcel, ptrace.Traces]{
		MaxAtOnce: maxCyclesAtOnce,
		Size:      func(*cycleParcel) (spans, bytes int) { return spansOfCycle, bytesOfCycle },
		Make:      e.traces,
		Dropped:   receiverkit.CountBy(counters.ReceiverRbkitSpansDropped),
	})
	e.logs = receiverkit.NewLogs(run, limits.LogLimits, handover.QueueSettings[logParcel, plog.Logs]{
		MaxAtOnce: 1,
		Size:      func(p *logParcel) (records, bytes int) { return p.records, p.bytes },
		Make:      func(parcels []logParcel) plog.Logs { return parcels[0].logs },
		Dropped:   receiverkit.CountBy(counters.ReceiverRbkitLogRecordsDropped),
	})
	e.profiles = receiverkit.NewProfiles(run, limits.SampleLimits, handover.QueueSettings[profileParcel, pprofile.Profiles]{
		MaxAtOnce: 1,
		Size:      func(p *profileParcel) (samples, bytes int) { return p.samples, p.bytes },
		Make:      func(parcels []profileParcel) pprofile.Profiles { return parcels[0].profiles },
		Dropped:   receiverkit.CountBy(counters.ReceiverRbkitSamplesDropped),
	})
	return e
}
