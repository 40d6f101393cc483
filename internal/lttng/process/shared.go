// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/lttng/callstream"
	"github.com/callbraid/callbraid/internal/lttng/mapping"
	"github.com/callbraid/callbraid/internal/lttng/symbols"
)

// Settings are what all groups of a receiver have in common.
type Settings struct {
	// ServiceName is the resource attribute service.name. Empty: unknown_service and the name of the
	// process, if it is known.
	ServiceName string
	// ResourceAttributes are added to each resource. They replace attributes of the same name.
	ResourceAttributes map[string]any
	// NameWait is how long call events wait for the list of their process's objects.
	NameWait time.Duration
	Rules    mapping.Rules
	Calls    callstream.Settings
	// Traces says that a pipeline takes the call events.
	Traces bool
	// Files are the symbol tables of object files; nil if Traces is false.
	Files *symbols.Files
	// Resumes says that after a shutdown the next collector continues the call streams.
	Resumes   bool
	Limits    Limits
	Telemetry Telemetry
	Now       func() time.Time
}

// Limits bound what the processes of a group hold together.
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

// shared is what the processes of a group have in common: their settings, their warnings, and what
// they hold together. A group's goroutine uses it.
type shared struct {
	*Settings
	logger *zap.Logger
	// host and session are resource attributes of all processes.
	host, session string
	batches       Batches
	logs          *Logs

	// processes is the number of processes. Any goroutine may read it.
	processes atomic.Int64
	// waiting is the number of call events that wait for a list of objects.
	waiting int
	// names and objects are the sizes of the names and of the lists of objects, in bytes.
	names, objects int
	// grown is called with the growth of names and objects.
	grown func(bytes int)
	// namesFull, waitingFull and processesFull make room when a limit is reached.
	namesFull, waitingFull, processesFull func()

	// warned has the warnings that a group logs once.
	warned     map[string]bool
	cannotPack logline.Seldom
}

// holdNames counts bytes of names. If they have no room, all processes forget their names first.
func (s *shared) holdNames(bytes int) {
	if s.names+bytes > s.Limits.NamesBytes {
		s.namesFull()
	}
	s.names += bytes
	s.grown(bytes)
}

// holdObjects counts bytes of lists of objects.
func (s *shared) holdObjects(bytes int) {
	s.objects += bytes
	s.grown(bytes)
}

// isFirst reports whether a warning has not been logged, and remembers it.
func (s *shared) isFirst(warning string) bool {
	if s.warned[warning] {
		return false
	}
	s.warned[warning] = true
	return true
}

func (s *shared) warnObjectRefused(err error) {
	if s.isFirst("objects") {
		s.logger.Warn("An object has no room: functions in it are named by their addresses", zap.Error(err))
	}
}

func (s *shared) logNamesForgotten(forgotten int) {
	if s.isFirst("names") {
		s.logger.Info("Names of functions and threads have no room. They are forgotten and read again, which costs time. Raise limits.max_names_bytes",
			zap.Int("forgotten", forgotten), zap.Int("max_names_bytes", s.Limits.NamesBytes))
	}
}

func (s *shared) logNoStateDump() {
	if s.isFirst("no state") {
		s.logger.Info("Processes record no state dumps, so calls may be paired across lttng stop and start. Record them with lttng enable-event --userspace 'lttng_ust_statedump:*'")
	}
}

const recordContexts = "Record it with lttng add-context --userspace --type=vpid --type=vtid --type=procname"

func (s *shared) warnNoProcess(event string) {
	if s.isFirst("no process") {
		s.logger.Warn("Call events lack their process, so they are counted and not paired. "+recordContexts, zap.String("event", event))
	}
}

func (s *shared) warnNoThread(event string) {
	if s.isFirst("no thread") {
		s.logger.Warn("Call events lack their thread, so they are counted and not paired. "+recordContexts, zap.String("event", event))
	}
}

func (s *shared) warnNoKey(event, field string) {
	if s.isFirst("no key " + event) {
		s.logger.Warn("Events of a call rule lack the field by which it pairs them, so they are counted and not paired: correct key_field",
			zap.String("event", event), zap.String("key_field", field))
	}
}

func (s *shared) logCannotPack(err error) {
	if since, say := s.cannotPack.Say(s.Now()); say {
		s.logger.Error("Call events of a process cannot be packed", zap.Error(err), zap.Int("since_last", since))
	}
}
