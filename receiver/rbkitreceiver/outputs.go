// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"context"
	"net"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/zmtp"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/eventswitch"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/counters"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/origin"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/process"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/profile"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/records"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/session"
)

// outputs is shared by the lives of all servers: settings, and the queues for their data.
type outputs struct {
	*receiverkit.Run
	config *Config
	// eventsOff are the log records that are switched off, by their event names.
	eventsOff map[string]bool
	// spans, logs and profiles are nil if no pipeline accepts them.
	spans    *handover.Spans[cycleParcel]
	logs     *handover.Logs[records.Parcel]
	profiles *handover.Profiles[profile.Parcel]
	metrics  *metricsLoop
	counters *counters.Counters
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
		Run: run, config: config, counters: own,
		eventsOff: eventswitch.Off(config.Events), measured: run.Next.Metrics != nil,
	}
	limits := &config.Limits
	o.spans = receiverkit.NewSpans(run, limits.SpanLimits, handover.QueueSettings[cycleParcel, ptrace.Traces]{
		MaxAtOnce: maxCyclesAtOnce,
		Size:      func(*cycleParcel) (spans, bytes int) { return spansOfCycle, bytesOfCycle },
		Make:      func(parcels []cycleParcel) ptrace.Traces { return tracesOf(run.Kit, parcels) },
		Dropped:   receiverkit.CountBy(own.ReceiverRbkitSpansDropped),
	})
	o.logs = receiverkit.NewLogs(run, limits.LogLimits, handover.QueueSettings[records.Parcel, plog.Logs]{
		MaxAtOnce: 1,
		Size:      func(p *records.Parcel) (records, bytes int) { return p.Records, p.Bytes },
		Make:      func(parcels []records.Parcel) plog.Logs { return parcels[0].Logs },
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

type dialFunc func(ctx context.Context, address string) (net.Conn, error)

// sessionSettings returns the settings of a server.
func (o *outputs) sessionSettings(server *ServerConfig, dial dialFunc) *session.Settings {
	c := o.config
	s := &session.Settings{
		Run: o.Run, Counters: o.counters, Output: o, Publish: server.Publish, Request: server.Request, Dial: dial,
		Connection: connectionOptions(c, server), Reconnect: c.Reconnect, RestoreTimeout: c.ShutdownTimeout, MaxMemory: c.Limits.MaxServerMemory,
		StateInterval: c.StateInterval, TriggerGCInterval: c.TriggerGCInterval, SnapshotInterval: c.ObjectSpaceSnapshotInterval,
		MemoryProfile: c.MemoryProfile, CPUProfile: c.CPUProfile, Clock: clockCommands[c.Clock],
		Origin: originsOf(c, server, o.Host), Process: o.processSettings(),
	}
	if o.measured && !c.Metrics.RubyGcStat.Enabled {
		s.Unmeasured = unmeasuredKeys
	}
	return s
}

// clockCommands are the commands that set the clocks.
var clockCommands = map[Clock]rbkit.Command{ClockWall: rbkit.UseWallTime, ClockCPU: rbkit.UseCPUTime}

// connectionOptions returns the options of connections to a server.
func connectionOptions(c *Config, server *ServerConfig) zmtp.Options {
	o := zmtp.Options{Timeout: c.Timeout, Heartbeat: c.Heartbeat, Limits: zmtp.Limits{Message: c.Limits.MaxMessageBytes}}
	if server.Username != "" {
		o.Security = zmtp.Plain{Username: server.Username, Password: string(server.Password)}
	}
	return o
}

// processSettings returns the settings of a server's processes.
func (o *outputs) processSettings() *process.Settings {
	limits := o.config.limitsOfServer()
	s := &process.Settings{
		MaxClasses: limits.MaxClasses, MaxFiles: limits.MaxFiles, MaxSites: limits.MaxSites,
		ClassesArePart: limits.MaxClasses < o.config.Limits.MaxClasses, SitesArePart: limits.MaxSites < o.config.Limits.MaxSites,
		MaxTrackedObjects: limits.MaxTrackedObjects, MaxDumpObjects: limits.MaxDumpObjects,
		Profiles: profile.Settings{
			Kit: o.Kit, Interval: o.config.ProfileInterval,
			MaxFrames: limits.MaxFrames, MaxStacks: limits.MaxProfileStacks, MaxBytes: limits.MaxQueuedSampleBytes / 2,
		},
		Records:  records.Settings{Kit: o.Kit},
		Measured: o.measured, Delivering: o.Delivering,
	}
	if o.spans != nil {
		s.CycleEnded = func(of *origin.Origin, c *process.Cycle) { o.spans.Enqueue(cycleParcel{cycle: *c, origin: of}) }
	}
	if o.profiles != nil {
		s.Profiles.Deliver = func(p profile.Parcel) { o.profiles.Enqueue(p) }
	}
	if o.logs != nil {
		s.DumpEnded = o.recordDump
		if o.config.DumpReferences && !o.eventsOff[records.EventObject] {
			s.Records.Deliver = func(p records.Parcel) { o.logs.Enqueue(p) }
		}
	}
	return s
}
