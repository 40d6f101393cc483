// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/eventswitch"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/counters"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/origin"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/profile"
)

// outputs is shared by the lives of all servers: settings, and the queues for their data.
type outputs struct {
	*receiverkit.Run
	config *Config
	// eventsOff are the log records that are switched off, by their event names.
	eventsOff map[string]bool
	// spans, logs and profiles are nil if no pipeline takes them.
	spans    *handover.Spans[cycleParcel]
	logs     *handover.Logs[logParcel]
	profiles *handover.Profiles[profile.Parcel]
	// measured says that a pipeline takes metrics. Nothing else needs objects that are
	// created and destroyed.
	measured bool
}

// maxCyclesAtOnce bounds the garbage collections of one delivery.
const maxCyclesAtOnce = 256

// newOutputs opens the outputs of each signal that has a pipeline. Data that a server
// publishes is lost if the receiver doesn't read it, so the receiver never waits for a
// pipeline. Each queue drops and counts data without room.
func newOutputs(run *receiverkit.Run, config *Config, own *counters.Counters) *outputs {
	o := &outputs{
		Run: run, config: config,
		eventsOff: eventswitch.Off(config.Events), measured: run.Next.Metrics != nil,
	}
	limits := &config.Limits
	o.spans = receiverkit.NewSpans(run, limits.SpanLimits, handover.QueueSettings[cycleParcel, ptrace.Traces]{
		MaxAtOnce: maxCyclesAtOnce,
		Size:      func(*cycleParcel) (spans, bytes int) { return spansOfCycle, bytesOfCycle },
		Make:      func(parcels []cycleParcel) ptrace.Traces { return tracesOf(run.Kit, parcels) },
		Dropped:   receiverkit.CountBy(own.ReceiverRbkitSpansDropped),
	})
	o.logs = receiverkit.NewLogs(run, limits.LogLimits, handover.QueueSettings[logParcel, plog.Logs]{
		MaxAtOnce: 1,
		Size:      func(p *logParcel) (records, bytes int) { return p.records, p.bytes },
		Make:      func(parcels []logParcel) plog.Logs { return parcels[0].logs },
		Dropped:   receiverkit.CountBy(own.ReceiverRbkitLogRecordsDropped),
	})
	o.profiles = receiverkit.NewProfiles(run, limits.SampleLimits, handover.QueueSettings[profile.Parcel, pprofile.Profiles]{
		MaxAtOnce: 1,
		Size:      func(p *profile.Parcel) (samples, bytes int) { return p.Samples, p.Bytes },
		Make:      func(parcels []profile.Parcel) pprofile.Profiles { return parcels[0].Profiles },
		Dropped:   receiverkit.CountBy(own.ReceiverRbkitSamplesDropped),
	})
	return o
}

// log delivers a log record of an event, if a pipeline takes it. at is its time; 0: now.
func (o *outputs) log(of *origin.Origin, name, body string, severity plog.SeverityNumber, at pcommon.Timestamp, fill func(pcommon.Map)) {
	if o.logs == nil || o.eventsOff[name] {
		return
	}
	logs, records := newLogs(o.Kit, of)
	r := records.AppendEmpty()
	observed := pcommon.NewTimestampFromTime(o.Now())
	if at == 0 {
		at = observed
	}
	r.SetTimestamp(at)
	r.SetObservedTimestamp(observed)
	r.SetEventName(name)
	r.SetSeverityNumber(severity)
	r.SetSeverityText(severity.String())
	r.Body().SetStr(body)
	fill(r.Attributes())
	o.logs.Add(logParcel{logs: logs, records: 1, bytes: bytesOfRecord + bytesOfValues(r.Attributes())})
}
