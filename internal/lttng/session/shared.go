// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/call/callstream"
	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/lttng/mapping"
	"github.com/callbraid/callbraid/internal/lttng/position"
	"github.com/callbraid/callbraid/internal/lttng/process"
	"github.com/callbraid/callbraid/internal/lttng/symbols"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
)

// Config has the parts of a receiver's configuration that its sessions need.
type Config struct {
	Settings Settings
	Mapping  *MappingConfig
	Limits   *LimitsConfig
	Common   *receiverkit.Config
	Batches  *receiverkit.BatchesConfig
	// Storage is the extension that stores positions. If it is nil, positions are kept in memory.
	Storage *component.ID
}

// Delivery says how the data of sessions reaches the pipelines.
type Delivery struct {
	// Scope is the name of the scope of log records.
	Scope string
	// WhileRefused is the end of a log line: what happens while the pipeline refuses batches.
	WhileRefused string
	// Overflow is the action if the queue of log records is full.
	Overflow handover.Overflow
}

// NewEnvironment returns the environment of a receiver's sessions. The receiver sets Ended, and Dial if it connects to a
// relay daemon. It calls Open at its start, and Close at its end.
func NewEnvironment(kit *receiverkit.Kit, config Config, telemetry Telemetry) *Environment {
	e := &Environment{
		Settings: config.Settings, Logger: kit.Logger, Telemetry: telemetry, Health: kit.Health,
		Now: func() time.Time { return kit.Now() }, config: config,
	}
	e.Process = e.processSettings()
	for _, line := range []*logline.Seldom{&e.seldom.attached, &e.seldom.closed, &e.seldom.gone} {
		line.Most = SessionsLogged
	}
	kit.PeerTime = e.AnswerTime()
	return e
}

// processSettings returns the settings of processes, without Traces and Files.
func (e *Environment) processSettings() *process.Settings {
	m, l, b := e.config.Mapping, e.config.Limits, e.config.Batches
	return &process.Settings{
		ServiceName: m.ServiceName, ResourceAttributes: e.config.Common.ResourceAttributes, NameWait: m.NameWait, Rules: mapping.NewRules(m.CallRules),
		Calls: callstream.Settings{
			TextKey: process.AttributeText, MaxBytes: b.Batch.MaxBytes, MaxDelay: b.Batch.MaxDelay, KeepaliveInterval: b.KeepaliveInterval, Now: e.Now,
		},
		Resumes: e.config.Storage != nil, Telemetry: e.Telemetry, Now: e.Now,
		Limits: process.Limits{
			Processes: l.MaxProcesses, NamesBytes: l.MaxNamesBytes, ObjectsBytes: l.MaxObjectsBytes, WaitingEvents: l.MaxWaitingEvents,
		},
	}
}

// Open opens what the sessions of a run share: symbol tables, positions, and the ways to the pipelines.
func (e *Environment) Open(ctx context.Context, run *receiverkit.Run, delivery Delivery) error {
	e.Memory = run.Memory
	e.Serving, e.Leaving, e.Delivering = run.Serving, run.Leaving, run.Delivering
	if run.Next.Traces != nil {
		files, err := e.openFiles()
		if err != nil {
			return fmt.Errorf("symbol_paths: %w", err)
		}
		e.Process.Traces, e.Process.Files = true, files
	}
	e.Positions = position.NewStore(e.Logger, e.openAccount())
	if id := e.config.Storage; id != nil {
		if err := e.Positions.Open(ctx, run.Collector, *id, run.Kit.Settings.ID); err != nil {
			return err
		}
	}
	e.openBatches(run, delivery.WhileRefused)
	e.openLogs(run, delivery.Scope, delivery.Overflow)
	return nil
}

// openAccount opens a memory account of something that sessions share. Its size is set when it grows and
// in Shrink.
func (e *Environment) openAccount() *budget.Account {
	a := e.Memory.Open(budget.Settings{Shrink: func(int64) {}})
	e.accounts = append(e.accounts, a)
	return a
}

// openFiles opens the symbol tables of object files. When the time to read ends, no file is read any more.
func (e *Environment) openFiles() (*symbols.Files, error) {
	settings := symbols.DefaultSettings()
	settings.Paths, settings.SourceLines = e.config.Mapping.SymbolPaths, e.config.Mapping.SourceLines
	settings.Context = e.Leaving
	settings.Hold, settings.Refused = e.openAccount().Set, e.Telemetry.SymbolFileRefused
	settings.Report = func(object string, err error) { LogNoNames(e.Logger, object, err) }
	settings.ReportLines = func(object string, err error) { logNoLines(e.Logger, object, err) }
	return symbols.NewFiles(settings)
}

// openBatches sets the delivery of batches. A session waits until the pipeline accepts a batch, and is not read
// meanwhile: files and the recordings of relay daemons stay where they are.
func (e *Environment) openBatches(run *receiverkit.Run, whileRefused string) {
	e.NewBatches = func(ctx context.Context, logger *zap.Logger) process.Batches {
		batches := receiverkit.NewBatches(ctx, run, logger, e.config.Batches, handover.BatchesSettings{
			WhileRefused: whileRefused, TryLate: true,
			Accepted: e.Telemetry.BatchAccepted, Dropped: e.Telemetry.BatchDropped, Retried: e.Telemetry.HandoverRetried,
		})
		if batches == nil {
			return nil // not a Batches with a nil pointer
		}
		return batches
	}
}

// logParcel is a batch of log records of one session on its way to the pipeline.
type logParcel struct {
	logs    plog.Logs
	records int
	bytes   int
}

// openLogs opens the queue of the log records of all sessions, if a pipeline accepts them.
func (e *Environment) openLogs(run *receiverkit.Run, scope string, overflow handover.Overflow) {
	queue := receiverkit.NewLogs(run, e.config.Limits.LogLimits, handover.QueueSettings[logParcel, plog.Logs]{
		Overflow: overflow, MaxAtOnce: 1,
		Size:    func(p *logParcel) (records, bytes int) { return p.records, p.bytes },
		Make:    func(parcels []logParcel) plog.Logs { return parcels[0].logs },
		Dropped: e.Telemetry.LogRecordsDropped,
	})
	if queue == nil {
		return
	}
	e.CloseLogs = queue.Close
	e.DeliverLogs = func(logs plog.Logs, records, bytes int) { queue.Enqueue(logParcel{logs, records, bytes}) }
	values := &e.config.Mapping.LogValues
	e.Logs = &process.LogSettings{
		MaxRecordBytes: e.config.Limits.MaxLogRecordBytes, EnumerationNumbers: values.EnumerationNumbers, Hexadecimal: values.Hexadecimal,
		MaxDelay:  e.config.Batches.Batch.MaxDelay,
		ScopeName: scope, ScopeVersion: run.Settings.BuildInfo.Version, Now: run.Now,
	}
}

// Shrink frees memory of shared data, if the budget needs it.
func (e *Environment) Shrink() {
	if e.Process.Files != nil {
		e.Process.Files.Fit()
	}
	e.Positions.Shrink()
}

// Close closes what sessions share. It does nothing if Open was not called.
func (e *Environment) Close(ctx context.Context) error {
	for _, a := range e.accounts {
		a.Close()
	}
	if e.Positions == nil {
		return nil
	}
	return e.Positions.Close(ctx)
}

// LogNoNames logs why functions of an object are named by their offsets.
func LogNoNames(logger *zap.Logger, object string, err error) {
	message := "Functions of an object have no names"
	if errors.Is(err, symbols.ErrNoFile) {
		message += ": no directory of symbol_paths has its file. Add the directory that has it under that path: / where the program runs, or a copy of that machine's root"
	}
	logger.Info(message+noRoom(err), zap.String("object", object), zap.Error(err))
}

// noRoom returns the remedy for a file that was not read because of the memory budget.
func noRoom(err error) string {
	if errors.Is(err, symbols.ErrNoRoom) {
		return ": the memory budget has no room to read its file. Raise limit_mib of memory_budget"
	}
	return ""
}

// logNoLines logs why functions of an object have names and no source lines.
func logNoLines(logger *zap.Logger, object string, err error) {
	message := "Functions of an object have no source lines"
	if errors.Is(err, symbols.ErrNoDebugInfo) {
		message += ": compile it with -g, or add the directory with its debug information to symbol_paths"
	}
	logger.Info(message+noRoom(err), zap.String("object", object), zap.Error(err))
}
