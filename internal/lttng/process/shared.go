// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"strconv"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/lttng/mapping"
)

// shared is common to the processes of a group: their settings, their warnings, and their memory together. A group's
// goroutine uses it.
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
	// namesFull, waitingFull and processesFull free memory when a limit is reached.
	namesFull, waitingFull, processesFull func()

	// warned has the warnings that a group logs once.
	warned     map[string]bool
	cannotPack logline.Seldom
}

// makesNothing reports whether events become neither log records nor call events.
func (s *shared) makesNothing() bool { return !s.Traces && s.logs == nil }

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

func (s *shared) logNoObject(address string) {
	if s.isFirst("no object") {
		s.logger.Info("An address lies in none of the known objects of its process. If the program loads plug-ins with dlopen, start it with LD_PRELOAD=liblttng-ust-dl.so",
			zap.String("address", address))
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

const recordSwitches = "Record them with lttng enable-event --kernel sched_switch, or the contexts with lttng add-context --kernel --type=pid --type=tid --type=procname"

func (s *shared) warnNoSwitches(event string) {
	if s.isFirst("no switches") {
		s.logger.Warn("Events of a call rule lack their thread, so they are counted and not paired: the trace of the kernel has neither events sched_switch nor contexts. "+recordSwitches,
			zap.String("event", event))
	}
}

// logRuleLacksField logs one event of the entries, and one of the exits of a rule: an asterisk may stand for many.
func (s *shared) logRuleLacksField(lack *mapping.LackError, isExit bool) {
	if s.isFirst("no field " + strconv.Itoa(lack.Rule) + strconv.FormatBool(isExit)) {
		s.logger.Error("Events of a call rule lack a field that the rule needs, so they are counted and not paired: correct "+lack.Setting,
			zap.Int("rule", lack.Rule), zap.String("event", lack.Event), zap.String("setting", lack.Setting),
			zap.String("field", lack.Field), zap.Strings("fields", lack.Fields))
	}
}

// warnNoDetail logs that no event of a rule has a field of attributes or error_field.
func (s *shared) warnNoDetail(rule int, d mapping.Detail) {
	if s.isFirst("no detail " + strconv.Itoa(rule) + d.Setting + " " + d.Field) {
		s.logger.Warn("No event of a call rule has a field that the rule names, so spans lack it: correct "+d.Setting,
			zap.Int("rule", rule), zap.String("setting", d.Setting), zap.String("field", d.Field))
	}
}

// warnNoKey logs that a variant or optional field of a key has no value in an event.
func (s *shared) warnNoKey(event string) {
	if s.isFirst("no key " + event) {
		s.logger.Warn("Some events of a call rule have no value in a field of key_field, so they are counted and not paired", zap.String("event", event))
	}
}

func (s *shared) warnNoCPU(cpu int64) {
	if s.isFirst("no CPU") {
		s.logger.Warn("Some events of a call rule have too high a number of the CPU, so they are counted and not paired", zap.Int64("cpu_id", cpu), zap.Int("max", maxCPUs-1))
	}
}

func (s *shared) logCannotPack(err error) {
	if since, due := s.cannotPack.Count(s.Now()); due {
		s.logger.Error("Call events of a process cannot be packed", zap.Error(err), zap.Int("times_since_last_line", since))
	}
}
