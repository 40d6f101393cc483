// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingconnector

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"

	"github.com/callbraid/callbraid/internal/call/engine"
	"github.com/callbraid/callbraid/internal/componentkit/confignames"
	"github.com/callbraid/callbraid/internal/componentkit/setting"
)

// Config is the configuration of the connector.
type Config struct {
	engine.PairingConfig `mapstructure:",squash"`
	// Keep selects traces. Without it all traces are kept.
	Keep configoptional.Optional[KeepConfig] `mapstructure:"keep"`
	// FoldRepeated makes one span of repeated short calls.
	FoldRepeated FoldConfig `mapstructure:"fold_repeated"`
	// Metrics configures the sums by function.
	Metrics MetricsConfig `mapstructure:"metrics"`
	// Profiles configures the sums by call path.
	Profiles ProfilesConfig `mapstructure:"profiles"`
	// Interval is the time between two messages of metrics, and of profiles.
	Interval time.Duration `mapstructure:"interval"`
	// Limits bounds the resources of one stream, and of all.
	Limits LimitsConfig `mapstructure:"limits"`
	// ShutdownTimeout is the time in which a shutdown delivers spans, metrics and profiles.
	ShutdownTimeout time.Duration `mapstructure:"shutdown_timeout"`
}

// KeepConfig selects traces: a trace is kept if one criterion applies.
type KeepConfig struct {
	// SlowerThan keeps traces whose root took at least this time; 0: none.
	SlowerThan time.Duration `mapstructure:"slower_than"`
	// Errors keeps traces with a call that an exception left.
	Errors bool `mapstructure:"errors"`
	// Functions keeps traces with a call of one of these functions.
	Functions []FunctionConfig `mapstructure:"functions"`
	// Ratio is the part of all traces that is kept, from 0 to 1, by trace ID.
	Ratio float64 `mapstructure:"ratio"`
	// MaxSpansPerSecond is the mean number of kept spans in a second; 0: no limit.
	MaxSpansPerSecond int `mapstructure:"max_spans_per_second"`
	// DecideAfter is the time after which a trace that has not ended is decided in pieces.
	DecideAfter time.Duration `mapstructure:"decide_after"`
}

// FunctionConfig selects functions.
type FunctionConfig struct {
	// Name is an RE2 expression that matches a whole code.function.name.
	Name string `mapstructure:"name"`
	// SlowerThan is the least time of a call; 0: any.
	SlowerThan time.Duration `mapstructure:"slower_than"`
}

// FoldConfig makes one span of repeated calls of one function by one caller.
type FoldConfig struct {
	// ShorterThan is the time that such a call is below; 0: every call has a span.
	ShorterThan time.Duration `mapstructure:"shorter_than"`
}

// MetricsConfig configures the sums by function.
type MetricsConfig struct {
	// MaxFunctions is the number of functions of all programs together. A program has at most half of
	// those that all others leave. Further ones are counted under otel.metric.overflow of their program.
	MaxFunctions int `mapstructure:"max_functions"`
	// MaxNameBytes is the length of the longest name of a function or an error type. Those with longer names
	// are counted as those beyond MaxFunctions, because back ends write a name for each of its numbers.
	MaxNameBytes int `mapstructure:"max_name_bytes"`
	// Expiration is the time for which the last points of an ended program are sent again. 0: once.
	Expiration time.Duration `mapstructure:"expiration"`
}

// ProfilesConfig configures the sums by call path.
type ProfilesConfig struct {
	// ByThread: each thread has call paths of its own.
	ByThread bool `mapstructure:"by_thread"`
	// MaxPaths is the number of call paths of all streams together. A stream has at most half of those
	// that all others leave. Calls of further ones are counted under one path.
	MaxPaths int `mapstructure:"max_paths"`
}

// LimitsConfig bounds the resources of one stream, and of all.
type LimitsConfig struct {
	engine.LimitsConfig `mapstructure:",squash"`
	// MaxUndecidedMiB is the memory for finished calls of traces that are not decided yet. Beyond it
	// traces are decided with their calls so far, first those of all streams that wait longest.
	MaxUndecidedMiB int `mapstructure:"max_undecided_mib"`
	// MaxSumsMiB is the memory of sums: a half for metrics, and a half for profiles. Functions, paths and
	// resources without room are counted together.
	MaxSumsMiB int `mapstructure:"max_sums_mib"`
}

const (
	// maxSpansPerSecond is the finest step of a limiter: a nanosecond for a span.
	maxSpansPerSecond = 1_000_000_000
	maxUndecidedMiB   = 1 << 20
	// minSumsMiB has room for the functions and paths of a small program.
	minSumsMiB, maxSumsMiB = 16, 1 << 20
	// random is the number of values that the random part of a trace ID has.
	random = 1 << 56
	// leastRatio is the least ratio with a threshold below all values: 1 - leastRatio is not 1 yet.
	leastRatio = 1.0 / (1 << 53)
)

func createDefaultConfig() component.Config {
	pairing := engine.DefaultConfig()
	return &Config{
		PairingConfig:   pairing.PairingConfig,
		Keep:            configoptional.Default(defaultKeep()),
		Metrics:         MetricsConfig{MaxFunctions: 20_000, MaxNameBytes: 1024, Expiration: 5 * time.Minute},
		Profiles:        ProfilesConfig{MaxPaths: 500_000},
		Interval:        10 * time.Second,
		Limits:          LimitsConfig{LimitsConfig: pairing.Limits, MaxUndecidedMiB: 64, MaxSumsMiB: 256},
		ShutdownTimeout: pairing.ShutdownTimeout,
	}
}

func defaultKeep() KeepConfig {
	return KeepConfig{Functions: []FunctionConfig{}, DecideAfter: time.Minute}
}

// keptTraces is the selection of traces, or nil if all spans are sent when their calls end. Repeated calls
// need one, because their span waits for the last one.
func (c *Config) keptTraces() *KeepConfig {
	if keep := c.Keep.Get(); keep != nil || c.FoldRepeated.ShorterThan == 0 {
		return keep
	}
	keep := defaultKeep()
	keep.Ratio = 1
	return &keep
}

var (
	_ confmap.Unmarshaler = (*Config)(nil)
	_ confmap.Validator   = (*Config)(nil)
)

// Unmarshal reports values of a wrong form with the form that is expected.
func (c *Config) Unmarshal(conf *confmap.Conf) error {
	raw := conf.ToStringMap()
	errs := []error{setting.Units("", raw, *c), setting.Units("keep.", raw["keep"], KeepConfig{})}
	if fold := raw["fold_repeated"]; !isMap(fold) {
		errs = append(errs, fmt.Errorf("fold_repeated is %v: write fold_repeated: {shorter_than: 1ms}", fold))
	}
	if keep := raw["keep"]; !isMap(keep) {
		errs = append(errs, fmt.Errorf("keep is %v: write criteria below it, such as keep: {slower_than: 100ms}", keep))
	} else if keep, _ := keep.(map[string]any); keep["functions"] != nil {
		functions, _ := keep["functions"].([]any)
		if functions == nil || slices.ContainsFunc(functions, func(f any) bool { return !isMap(f) }) {
			errs = append(errs, fmt.Errorf("keep.functions is %v: write a list of names, such as keep: {functions: [{name: f}]}", keep["functions"]))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return confignames.Unmarshal(conf, c)
}

// isMap reports whether a value of a configuration has settings below it, or is not there.
func isMap(raw any) bool {
	_, is := raw.(map[string]any)
	return is || raw == nil
}

// withoutPipeline are the settings that differ from the defaults, and have no effect, by the signal whose pipelines are missing.
func (c *Config) withoutPipeline(traces, metrics, profiles bool) map[string][]string {
	defaults, unused := createDefaultConfig().(*Config), map[string][]string{}
	note := func(signal string, isConnected, isDefault bool, setting string) {
		if !isConnected && !isDefault {
			unused[signal] = append(unused[signal], setting)
		}
	}
	note("traces", traces, c.Keep.Get() == nil, "keep")
	note("traces", traces, c.FoldRepeated == defaults.FoldRepeated, "fold_repeated")
	note("traces", traces, len(c.TraceRoots) == 0, "trace_roots")
	note("traces", traces, c.MaxSpansPerTrace == defaults.MaxSpansPerTrace, "max_spans_per_trace")
	note("traces", traces, c.MinDuration == defaults.MinDuration, "min_duration")
	note("traces", traces, c.MaxDepth == defaults.MaxDepth, "max_depth")
	note("traces", traces, c.SpanAttributes == defaults.SpanAttributes, "span_attributes")
	note("traces", traces, c.Limits.MaxUndecidedMiB == defaults.Limits.MaxUndecidedMiB, "limits.max_undecided_mib")
	note("traces or profiles", traces || profiles, c.Limits.MaxHeldMiB == defaults.Limits.MaxHeldMiB, "limits.max_held_mib")
	note("metrics", metrics, c.Metrics == defaults.Metrics, "metrics")
	note("profiles", profiles, c.Profiles == defaults.Profiles, "profiles")
	note("metrics or profiles", metrics || profiles, c.Interval == defaults.Interval, "interval")
	note("metrics or profiles", metrics || profiles, c.Limits.MaxSumsMiB == defaults.Limits.MaxSumsMiB, "limits.max_sums_mib")
	return unused
}

// withoutKeep are the settings that differ from the defaults, and have no effect because no call waits for the decision about its trace.
func (c *Config) withoutKeep() []string {
	if c.keptTraces() != nil || c.Limits.MaxUndecidedMiB == createDefaultConfig().(*Config).Limits.MaxUndecidedMiB {
		return nil
	}
	return []string{"limits.max_undecided_mib"}
}

// Validate reports all settings with impossible values.
func (c *Config) Validate() error {
	errs := []error{
		c.engine().Validate(),
		setting.Within("fold_repeated.shorter_than", c.FoldRepeated.ShorterThan, 0, 24*time.Hour),
		setting.Between("metrics.max_functions", c.Metrics.MaxFunctions, 1, 10_000_000),
		setting.Between("metrics.max_name_bytes", c.Metrics.MaxNameBytes, 1, 64<<10),
		setting.Within("metrics.expiration", c.Metrics.Expiration, 0, 1000*time.Hour),
		setting.Between("profiles.max_paths", c.Profiles.MaxPaths, 1, 100_000_000),
		setting.Within("interval", c.Interval, 100*time.Millisecond, 24*time.Hour),
		setting.Between("limits.max_undecided_mib", c.Limits.MaxUndecidedMiB, 1, maxUndecidedMiB),
		setting.Between("limits.max_sums_mib", c.Limits.MaxSumsMiB, minSumsMiB, maxSumsMiB),
	}
	if shorter := c.FoldRepeated.ShorterThan; shorter > 0 && shorter <= c.MinDuration {
		errs = append(errs, fmt.Errorf("fold_repeated.shorter_than is %v, and min_duration leaves out all of these calls: set it above min_duration, %v, or remove it", shorter, c.MinDuration))
	}
	if keep := c.Keep.Get(); keep != nil {
		errs = append(errs, keep.validate())
	}
	return errors.Join(errs...)
}

func (k *KeepConfig) validate() error {
	var errs []error
	if k.SlowerThan < 0 {
		errs = append(errs, fmt.Errorf("keep.slower_than is %v: set it to 0s or more", k.SlowerThan))
	}
	if k.SlowerThan > 0 && k.SlowerThan >= k.DecideAfter {
		errs = append(errs, k.decidedTooEarly("keep.slower_than", k.SlowerThan))
	}
	if !(k.Ratio >= 0 && k.Ratio <= 1) {
		errs = append(errs, fmt.Errorf("keep.ratio is %v: set it to 0 to 1", k.Ratio))
	}
	if k.Ratio > 0 && k.Ratio < leastRatio {
		errs = append(errs, fmt.Errorf("keep.ratio is %v, which keeps no trace: set it to %v or more, or to 0", k.Ratio, leastRatio))
	}
	if k.SlowerThan == 0 && !k.Errors && len(k.Functions) == 0 && k.Ratio == 0 {
		errs = append(errs, errors.New("keep has no criterion, so no trace would be kept: set keep.slower_than, keep.errors, keep.functions or keep.ratio, or remove the connector from the receivers of traces pipelines"))
	}
	for i, f := range k.Functions {
		if f.SlowerThan < 0 {
			errs = append(errs, fmt.Errorf("keep.functions[%d].slower_than is %v: set it to 0s or more", i, f.SlowerThan))
		}
		if f.SlowerThan > 0 && f.SlowerThan >= k.DecideAfter {
			errs = append(errs, k.decidedTooEarly(fmt.Sprintf("keep.functions[%d].slower_than", i), f.SlowerThan))
		}
		if _, err := regexp.Compile(f.Name); err != nil {
			errs = append(errs, fmt.Errorf("keep.functions[%d].name is no RE2 expression: write it in the syntax of https://github.com/google/re2/wiki/Syntax: %w", i, err))
		}
		if f.Name == "" {
			errs = append(errs, fmt.Errorf("keep.functions[%d].name is empty: set it to an RE2 expression that matches a whole code.function.name", i))
		}
	}
	return errors.Join(append(errs,
		setting.Between("keep.max_spans_per_second", k.MaxSpansPerSecond, 0, maxSpansPerSecond),
		setting.Within("keep.decide_after", k.DecideAfter, time.Second, 24*time.Hour),
	)...)
}

// decidedTooEarly returns the error for a time that is not over when a trace is decided in pieces: the first pieces would be dropped.
func (k *KeepConfig) decidedTooEarly(name string, value time.Duration) error {
	return fmt.Errorf("%s is %v, and the first calls of such a trace would be dropped after keep.decide_after, %v: set keep.decide_after above %[2]v", name, value, k.DecideAfter)
}

// threshold is the least random part of the ID of a kept trace, as OpenTelemetry's probability
// sampling defines it.
func (k *KeepConfig) threshold() uint64 { return uint64(math.Round((1 - k.Ratio) * random)) }

// engine is the configuration of the engine.
func (c *Config) engine() *engine.Config {
	return &engine.Config{PairingConfig: c.PairingConfig, Limits: c.Limits.LimitsConfig, ShutdownTimeout: c.ShutdownTimeout}
}
