// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/call/callstream"
	"github.com/callbraid/callbraid/internal/lttng/mapping"
	"github.com/callbraid/callbraid/internal/lttng/symbols"
)

// Settings are common to all groups of a receiver.
type Settings struct {
	// ServiceName is the resource attribute service.name. Empty: unknown_service and the name of the
	// process, if it is known.
	ServiceName string
	// ResourceAttributes are added to each resource. They replace attributes of the same name.
	ResourceAttributes map[string]any
	// NameWait is the maximum time for which call events wait for the list of their process's objects.
	NameWait time.Duration
	Rules    mapping.Rules
	Calls    callstream.Settings
	// Traces is set if a pipeline accepts the call events.
	Traces bool
	// Files are the symbol tables of object files; nil if Traces is false.
	Files *symbols.Files
	// Resumes is set if the next collector continues the call streams after a shutdown.
	Resumes   bool
	Limits    Limits
	Telemetry Telemetry
	Now       func() time.Time
}

// Limits bound the memory of a group's processes together.
type Limits struct {
	// Processes is the maximum number of processes.
	Processes int
	// NamesBytes bounds the names of functions and threads, in bytes.
	NamesBytes int
	// ObjectsBytes bounds the lists of loaded objects, in bytes.
	ObjectsBytes int
	// WaitingEvents is the maximum number of call events that wait for lists of objects.
	WaitingEvents int
}

// Telemetry counts, for the operator of the collector. No method is called for each event.
type Telemetry interface {
	// CallStreams counts call streams that began and did not end.
	CallStreams(change int64)
	CallEventsPacked(n int64)
	CallEventsDropped(n int64, reason string)
	BatchDropped(events int, reason string)
	// CallValuesCut counts arguments and return values that were too long.
	CallValuesCut(n int64)
	// Break counts breaks of the call streams of a trace.
	Break(cause callevent.Cause)
	NamesForgotten(n int64)
	// NameUnknown counts a function without a name.
	NameUnknown()
	// LineUnknown counts a function with a name and without a source line. The reason is one of package symbols.
	LineUnknown(reason string)
	ObjectRefused()
}

// Reasons for dropped call events, besides those of deliveries.
const (
	DroppedInvalid   = "invalid"
	DroppedNoProcess = "no_process"
	DroppedNoThread  = "no_thread"
	DroppedNoKey     = "no_key"
	// DroppedMemory: the memory budget of the collector is used up.
	DroppedMemory = "memory_budget"
)

// Batches delivers batches of call events.
type Batches interface {
	// Send delivers a batch, and may wait for the pipeline.
	Send(batch callevent.Packed, resource pcommon.Resource)
	// Offer delivers a batch unless the pipeline is busy, and reports whether it did.
	Offer(batch callevent.Packed, resource pcommon.Resource) bool
}
