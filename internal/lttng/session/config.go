// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/setting"
	"github.com/callbraid/callbraid/internal/lttng/callstream"
	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/mapping"
	"github.com/callbraid/callbraid/internal/lttng/process"
	"github.com/callbraid/callbraid/internal/lttng/symbols"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
)

// MappingConfig has the settings that give events a meaning. Receivers of CTF traces squash it into their Config.
type MappingConfig struct {
	// ServiceName is the resource attribute service.name. Empty: unknown_service: and the name of the
	// process, if it is known.
	ServiceName string `mapstructure:"service_name"`
	// SymbolPaths are directories that have object files under the paths that the tracer recorded.
	// Empty: no file is read, and functions are named by object and offset.
	SymbolPaths []string `mapstructure:"symbol_paths"`
	// SourceLines is set if functions get the source file and line at which they begin, from debug information below
	// SymbolPaths.
	SourceLines bool `mapstructure:"source_lines"`
	// NameWait is the maximum time that addresses wait for the list of the process's objects. It is always less than
	// the processor's reorder.max_wait.
	NameWait time.Duration `mapstructure:"name_wait"`
	// LogValues determines the form of values in log records.
	LogValues LogValuesConfig `mapstructure:"log_values"`
	// CallRules make calls of other pairs of events.
	CallRules []mapping.CallRule `mapstructure:"call_rules"`
}

// LogValuesConfig determines the form of values in log records.
type LogValuesConfig struct {
	// EnumerationNumbers adds an attribute with the number of each enumeration, beside that with its label.
	EnumerationNumbers bool `mapstructure:"enumeration_numbers"`
	// Hexadecimal writes integers whose preferred base is 16 as text.
	Hexadecimal bool `mapstructure:"hexadecimal"`
}

// LimitsConfig bounds the memory that the data of one session can make the receiver use.
type LimitsConfig struct {
	// MaxStreams is the maximum number of streams of a session.
	MaxStreams int `mapstructure:"max_streams"`
	// MaxPacketBytes and MaxMetadataBytes bound a packet, and the metadata of a trace.
	MaxPacketBytes   int `mapstructure:"max_packet_bytes"`
	MaxMetadataBytes int `mapstructure:"max_metadata_bytes"`
	// MaxWaitingBytes bounds the packets of a session that wait for packets of other streams; one packet
	// may exceed it. Half of it is for packets for which other streams wait. If these have no room, the
	// others continue without them.
	MaxWaitingBytes int `mapstructure:"max_waiting_bytes"`
	// MaxNamesBytes bounds the names of functions and threads of all processes of a session. Beyond it
	// all are forgotten and read again.
	MaxNamesBytes int `mapstructure:"max_names_bytes"`
	// MaxObjectsBytes bounds the lists of objects that the processes of a session have loaded. Objects
	// without room are refused.
	MaxObjectsBytes int `mapstructure:"max_objects_bytes"`
	// MaxProcesses is the maximum number of processes of a session. Beyond it the call stream of the process with the
	// oldest last event ends.
	MaxProcesses int `mapstructure:"max_processes"`
	// MaxWaitingEvents is the maximum number of call events of a session that wait for lists of objects.
	// Beyond it those of the process with the most stop waiting.
	MaxWaitingEvents int `mapstructure:"max_waiting_events"`
	// MaxLogRecordBytes is the approximate maximum size of a log record. Values that do not fit are omitted or
	// truncated.
	MaxLogRecordBytes int `mapstructure:"max_log_record_bytes"`
	// LogLimits bound the log records that wait for the pipeline.
	receiverkit.LogLimits `mapstructure:",squash"`
}

const (
	kibibyte, mebibyte = 1 << 10, 1 << 20

	// MinPacketBytes has room for the smallest buffers that tracers use.
	MinPacketBytes = 64 * kibibyte
	// MinNamesBytes has room for the longest names, and MinObjectsBytes for the objects of a small
	// process.
	MinNamesBytes   = mebibyte
	MinObjectsBytes = 64 * kibibyte
	// MinLogRecordBytes has room for the record of an ordinary program.
	MinLogRecordBytes = 16 * kibibyte
	MaxLogRecordBytes = 64 * mebibyte
)

// DefaultMappingConfig returns the defaults.
func DefaultMappingConfig() MappingConfig {
	return MappingConfig{SymbolPaths: []string{"/"}, SourceLines: true, NameWait: time.Second}
}

// DefaultLimits returns the defaults.
func DefaultLimits() LimitsConfig {
	return LimitsConfig{
		MaxStreams:        4096,
		MaxPacketBytes:    64 * mebibyte,
		MaxMetadataBytes:  ctf.MaxMetadataBytes,
		MaxWaitingBytes:   64 * mebibyte,
		MaxNamesBytes:     128 * mebibyte,
		MaxObjectsBytes:   64 * mebibyte,
		MaxProcesses:      1024,
		MaxWaitingEvents:  100_000,
		MaxLogRecordBytes: mebibyte,
		LogLimits:         receiverkit.LogLimits{MaxQueuedLogs: 100_000, MaxQueuedLogBytes: 64 * mebibyte},
	}
}

// ValidateMapping returns an error for each setting out of bounds.
func (c *MappingConfig) ValidateMapping() error {
	return errors.Join(
		c.validateSymbolPaths(),
		setting.Within("name_wait", c.NameWait, time.Millisecond, receiverkit.MaxBatchNameWait),
		mapping.ValidateCallRules(c.CallRules),
	)
}

func (c *MappingConfig) validateSymbolPaths() error {
	for i, path := range c.SymbolPaths {
		if !filepath.IsAbs(path) {
			return fmt.Errorf("symbol_paths[%d] is %q: set it to an absolute path of a directory", i, path)
		}
	}
	return nil
}

// ValidateLimits returns an error for each limit out of bounds.
func (c *LimitsConfig) ValidateLimits() error {
	return errors.Join(
		setting.Between("limits.max_streams", c.MaxStreams, 2, 65_536),
		setting.Between("limits.max_packet_bytes", c.MaxPacketBytes, MinPacketBytes, ctf.MaxPacketBytes),
		setting.Between("limits.max_metadata_bytes", c.MaxMetadataBytes, MinPacketBytes, ctf.MaxMetadataBytes),
		setting.Between("limits.max_waiting_bytes", c.MaxWaitingBytes, mebibyte, math.MaxInt),
		setting.Between("limits.max_names_bytes", c.MaxNamesBytes, MinNamesBytes, math.MaxInt),
		setting.Between("limits.max_objects_bytes", c.MaxObjectsBytes, MinObjectsBytes, math.MaxInt),
		setting.Between("limits.max_processes", c.MaxProcesses, 1, 1_000_000),
		setting.Between("limits.max_waiting_events", c.MaxWaitingEvents, 1, 100_000_000),
		setting.Between("limits.max_queued_logs", c.MaxQueuedLogs, 1, 10_000_000),
		setting.Between("limits.max_log_record_bytes", c.MaxLogRecordBytes, MinLogRecordBytes, MaxLogRecordBytes),
		// Any record has to have room.
		setting.Between("limits.max_queued_log_bytes", c.MaxQueuedLogBytes, max(mebibyte, c.MaxLogRecordBytes), math.MaxInt),
	)
}

// ProcessSettings returns the settings of processes. now returns the time. resumes is set if the next collector
// continues the call streams.
func ProcessSettings(m *MappingConfig, l *LimitsConfig, common *receiverkit.Config, b *receiverkit.BatchesConfig, resumes bool, now func() time.Time) *process.Settings {
	return &process.Settings{
		ServiceName: m.ServiceName, ResourceAttributes: common.ResourceAttributes, NameWait: m.NameWait, Rules: mapping.NewRules(m.CallRules),
		Calls: callstream.Settings{
			TextKey: process.AttributeText, MaxBytes: b.Batch.MaxBytes, MaxDelay: b.Batch.MaxDelay, KeepaliveInterval: b.KeepaliveInterval, Now: now,
		},
		Resumes: resumes, Now: now,
		Limits: process.Limits{
			Processes: l.MaxProcesses, NamesBytes: l.MaxNamesBytes, ObjectsBytes: l.MaxObjectsBytes, WaitingEvents: l.MaxWaitingEvents,
		},
	}
}

// OpenFiles opens the symbol tables of object files. When ctx ends, no file is read any more. hold counts their memory,
// and refused those that were not read because it has no room.
func (c *MappingConfig) OpenFiles(ctx context.Context, logger *zap.Logger, hold func(bytes int64) (excess int64), refused func()) (*symbols.Files, error) {
	settings := symbols.DefaultSettings()
	settings.Paths = c.SymbolPaths
	settings.Context = ctx
	settings.SourceLines = c.SourceLines
	settings.Hold, settings.Refused = hold, refused
	settings.Report = func(object string, err error) { LogNoNames(logger, object, err) }
	settings.ReportLines = func(object string, err error) { logNoLines(logger, object, err) }
	files, err := symbols.NewFiles(settings)
	if err != nil {
		return nil, fmt.Errorf("symbol_paths: %w", err)
	}
	return files, nil
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

// logParcel is a batch of log records of one session on its way to the pipeline.
type logParcel struct {
	logs    plog.Logs
	records int
	bytes   int
}

// OpenLogs opens the queue of the log records of all sessions, and sets their settings and delivery. It returns false
// if no pipeline accepts log records.
func (e *Environment) OpenLogs(run *receiverkit.Run, m *MappingConfig, l *LimitsConfig, b *receiverkit.BatchesConfig, scope string, overflow handover.Overflow, dropped func(n int, reason string)) bool {
	queue := receiverkit.NewLogs(run, l.LogLimits, handover.QueueSettings[logParcel, plog.Logs]{
		Overflow: overflow, MaxAtOnce: 1,
		Size:    func(p *logParcel) (records, bytes int) { return p.records, p.bytes },
		Make:    func(parcels []logParcel) plog.Logs { return parcels[0].logs },
		Dropped: dropped,
	})
	if queue == nil {
		return false
	}
	e.CloseLogs = queue.Close
	e.DeliverLogs = func(logs plog.Logs, records, bytes int) { queue.Enqueue(logParcel{logs, records, bytes}) }
	e.Logs = &process.LogSettings{
		MaxRecordBytes: l.MaxLogRecordBytes, EnumerationNumbers: m.LogValues.EnumerationNumbers, Hexadecimal: m.LogValues.Hexadecimal,
		MaxDelay:  b.Batch.MaxDelay,
		ScopeName: scope, ScopeVersion: run.Settings.BuildInfo.Version, Now: run.Now,
	}
	return true
}
