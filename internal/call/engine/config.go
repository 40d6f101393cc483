// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"go.opentelemetry.io/collector/confmap"

	"github.com/callbraid/callbraid/internal/call/pairing"
	"github.com/callbraid/callbraid/internal/componentkit/confignames"
	"github.com/callbraid/callbraid/internal/componentkit/setting"
)

// Config is the configuration of an engine.
type Config struct {
	PairingConfig `mapstructure:",squash"`
	// Limits bounds the resources of one stream, and of all.
	Limits LimitsConfig `mapstructure:"limits"`
	// ShutdownTimeout is the time in which a shutdown offers finished spans to the next component.
	ShutdownTimeout time.Duration `mapstructure:"shutdown_timeout"`
}

// PairingConfig is the configuration of pairing, without its limits.
type PairingConfig struct {
	// Reorder bounds the wait for missing events.
	Reorder ReorderConfig `mapstructure:"reorder"`
	// Truncated is the treatment of calls whose end was not seen: "emit" makes marked spans of
	// them, "drop" leaves them out.
	Truncated string `mapstructure:"truncated"`
	// TraceRoots are RE2 expressions. A function whose whole code.function.name matches one always
	// starts a new trace.
	TraceRoots []string `mapstructure:"trace_roots"`
	// MaxSpansPerTrace is the number of calls of a trace. Later calls of a lane go to a
	// continuation trace; 0: no limit.
	MaxSpansPerTrace int `mapstructure:"max_spans_per_trace"`
	// MinDuration leaves out shorter calls, and MaxDepth calls that are deeper on the stack. Their
	// number, time and errors are added to the caller. 0: none is left out.
	MinDuration time.Duration `mapstructure:"min_duration"`
	MaxDepth    int           `mapstructure:"max_depth"`
	// MaxClockJump is the largest distance of an event's time ahead of the receipt of its batch, or
	// behind the event before it.
	MaxClockJump time.Duration `mapstructure:"max_clock_jump"`
	// IdleTimeout is the time without a batch after which a call stream ends.
	IdleTimeout time.Duration `mapstructure:"idle_timeout"`
	// SpanAttributes are attributes of spans that few users read.
	SpanAttributes SpanAttributesConfig `mapstructure:"span_attributes"`
}

// ReorderConfig bounds the wait for missing events.
type ReorderConfig struct {
	// MaxEvents is, for each call stream, the largest distance between the highest waiting number
	// and the lowest.
	MaxEvents int `mapstructure:"max_events"`
	// MaxMiB is, for the whole processor, the memory of waiting events, open calls and names.
	MaxMiB int `mapstructure:"max_mib"`
	// MaxWait is the longest wait for a missing number.
	MaxWait time.Duration `mapstructure:"max_wait"`
}

// SpanAttributesConfig selects attributes of spans that few users read. With them spans are half as
// large again.
type SpanAttributesConfig struct {
	// Sequence is callbraid.sequence, the number of the entry in its call stream.
	Sequence bool `mapstructure:"sequence"`
	// FunctionText is the function as the tracer wrote it, under the tracer's own name, such as
	// bytefrog.method.signature.
	FunctionText bool `mapstructure:"function_text"`
}

// LimitsConfig bounds the resources of one stream, and of all.
type LimitsConfig struct {
	// MaxStreams is the number of call streams at the same time. engine.boundStreams has the rules
	// beyond it.
	MaxStreams int `mapstructure:"max_streams"`
	// MaxLanes is the number of threads, or other lanes, of a stream.
	MaxLanes int `mapstructure:"max_lanes"`
	// MaxFrames is the number of open calls of a lane.
	MaxFrames int `mapstructure:"max_frames"`
	// MaxNamesMiB is the memory for the names of functions, lanes and exceptions of a stream.
	MaxNamesMiB int `mapstructure:"max_names_mib"`
	// MaxExceptionsPerSpan is the number of exceptions in a span.
	MaxExceptionsPerSpan int `mapstructure:"max_exceptions_per_span"`
	// MaxAttributeDepth is the number of levels of lists and maps in an attribute. The processor
	// refuses a hand-over with more.
	MaxAttributeDepth int `mapstructure:"max_attribute_depth"`
	// MaxHeldMiB is the memory for finished spans while the next component refuses them. Beyond it
	// callers wait.
	MaxHeldMiB int `mapstructure:"max_held_mib"`
}

const (
	truncatedEmit = "emit"
	truncatedDrop = "drop"

	// maxMiB is a tebibyte. Two events with a distance of maxEvents take 8 GiB. Larger values are
	// mistakes.
	maxMiB    = 1 << 20
	maxEvents = 1 << 28
	// maxAttributeDepth is a depth at which copying an attribute takes no more stack than other
	// work.
	maxAttributeDepth = 1000
)

// DefaultConfig returns the defaults of all settings.
func DefaultConfig() *Config {
	return &Config{
		PairingConfig: PairingConfig{
			Reorder:          ReorderConfig{MaxEvents: 1_000_000, MaxMiB: 512, MaxWait: 5 * time.Second},
			Truncated:        truncatedEmit,
			TraceRoots:       []string{},
			MaxSpansPerTrace: 20_000,
			MaxClockJump:     time.Minute,
			IdleTimeout:      time.Minute,
		},
		Limits: LimitsConfig{
			MaxStreams: 10_000, MaxLanes: 10_000, MaxFrames: 16_384,
			MaxNamesMiB: 64, MaxExceptionsPerSpan: 128, MaxAttributeDepth: 32, MaxHeldMiB: 64,
		},
		ShutdownTimeout: 5 * time.Second,
	}
}

// connectorSettings are settings that only the connector has.
var connectorSettings = []string{"keep", "fold_repeated", "metrics", "profiles", "interval", "limits.max_undecided_mib", "limits.max_sums_mib"}

var (
	_ confmap.Unmarshaler = (*Config)(nil)
	_ confmap.Validator   = (*Config)(nil)
)

// Unmarshal reports settings of the connector, and times without a unit.
func (c *Config) Unmarshal(conf *confmap.Conf) error {
	errs := []error{setting.Units("", conf.ToStringMap(), *c)}
	for _, name := range connectorSettings {
		if conf.IsSet(strings.ReplaceAll(name, ".", confmap.KeyDelimiter)) {
			errs = append(errs, fmt.Errorf("%s is a setting of the connector stack_pairing, and this is the processor: use the connector in place of the processor, and move the setting there", name))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return confignames.Unmarshal(conf, c)
}

// Validate reports all settings with impossible values.
func (c *Config) Validate() error {
	var errs []error
	atLeast := func(name string, value, least int) {
		if value < least {
			errs = append(errs, fmt.Errorf("%s is %d: set it to %d or more", name, value, least))
		}
	}
	between := func(name string, value, least, most int) {
		atLeast(name, value, least)
		if value > most {
			errs = append(errs, fmt.Errorf("%s is %d: set it to %d or less", name, value, most))
		}
	}
	positive := func(name string, value time.Duration) {
		if value <= 0 {
			errs = append(errs, fmt.Errorf("%s is %v: set it above 0s", name, value))
		}
	}
	between("reorder.max_events", c.Reorder.MaxEvents, 1, maxEvents)
	between("reorder.max_mib", c.Reorder.MaxMiB, 1, maxMiB)
	positive("reorder.max_wait", c.Reorder.MaxWait)
	if c.Truncated != truncatedEmit && c.Truncated != truncatedDrop {
		errs = append(errs, fmt.Errorf("truncated is %q: set it to %q or %q", c.Truncated, truncatedEmit, truncatedDrop))
	}
	if _, err := compileRoots(c.TraceRoots); err != nil {
		errs = append(errs, err)
	}
	atLeast("max_spans_per_trace", c.MaxSpansPerTrace, 0)
	if c.MinDuration < 0 {
		errs = append(errs, fmt.Errorf("min_duration is %v: set it to 0s or more", c.MinDuration))
	}
	atLeast("max_depth", c.MaxDepth, 0)
	positive("max_clock_jump", c.MaxClockJump)
	positive("idle_timeout", c.IdleTimeout)
	if c.IdleTimeout > 0 && c.IdleTimeout <= c.Reorder.MaxWait {
		errs = append(errs, fmt.Errorf("idle_timeout is %v: set it above reorder.max_wait, %v", c.IdleTimeout, c.Reorder.MaxWait))
	}
	atLeast("limits.max_streams", c.Limits.MaxStreams, 1)
	atLeast("limits.max_lanes", c.Limits.MaxLanes, 1)
	atLeast("limits.max_frames", c.Limits.MaxFrames, 1)
	between("limits.max_names_mib", c.Limits.MaxNamesMiB, 1, maxMiB)
	atLeast("limits.max_exceptions_per_span", c.Limits.MaxExceptionsPerSpan, 0)
	between("limits.max_attribute_depth", c.Limits.MaxAttributeDepth, 1, maxAttributeDepth)
	between("limits.max_held_mib", c.Limits.MaxHeldMiB, 1, maxMiB)
	positive("shutdown_timeout", c.ShutdownTimeout)
	return errors.Join(errs...)
}

// compileRoots returns nil if there are no expressions.
func compileRoots(expressions []string) (func(qualified string) bool, error) {
	if len(expressions) == 0 {
		return nil, nil
	}
	roots := make([]func(string) bool, len(expressions))
	for i, expression := range expressions {
		root, err := regexp.Compile(expression)
		if err != nil {
			return nil, fmt.Errorf("trace_roots[%d] is no RE2 expression: write it in the syntax of https://github.com/google/re2/wiki/Syntax: %w", i, err)
		}
		roots[i] = WholeName(root)
	}
	return func(qualified string) bool {
		for _, root := range roots {
			if root(qualified) {
				return true
			}
		}
		return false
	}, nil
}

// WholeName returns a function that reports whether an expression matches a whole name. It changes
// the expression.
func WholeName(expression *regexp.Regexp) func(name string) bool {
	// The longest match is the whole name, if that matches. Anchors ^ and $ could change the
	// meaning of an expression with an unbalanced parenthesis or quote.
	expression.Longest()
	return func(name string) bool {
		at := expression.FindStringIndex(name)
		return at != nil && at[0] == 0 && at[1] == len(name)
	}
}

// pairing returns the settings of package pairing.
func (c *Config) pairing(traceRoot func(string) bool) pairing.Settings {
	return pairing.Settings{
		MaxEvents: c.Reorder.MaxEvents, MaxWait: c.Reorder.MaxWait,
		MaxClockJump: c.MaxClockJump.Nanoseconds(),
		MaxFrames:    c.Limits.MaxFrames, MaxLanes: c.Limits.MaxLanes, MaxNameBytes: c.Limits.MaxNamesMiB << 20,
		MaxThrows: c.Limits.MaxExceptionsPerSpan, MaxSpansPerTrace: c.MaxSpansPerTrace, TraceRoot: traceRoot,
		MinDuration: c.MinDuration.Nanoseconds(), MaxDepth: c.MaxDepth,
		DropTruncated: c.Truncated == truncatedDrop,
	}
}
