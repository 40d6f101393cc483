// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"time"

	"github.com/callbraid/callbraid/internal/componentkit/setting"
	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/mapping"
	"github.com/callbraid/callbraid/internal/receiverkit"
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
