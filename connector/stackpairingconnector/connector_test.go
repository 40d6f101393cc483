// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingconnector

import (
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/connector/xconnector"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/callbraid/callbraid/connector/stackpairingconnector/internal/metadata"
	"github.com/callbraid/callbraid/internal/testkit"
)

func TestEachOutputStartsAndStopsAlone(t *testing.T) {
	set := connectortest.NewNopSettings(metadata.Type)
	for name, start := range map[string]func(xconnector.Factory, *Config) (*input, error){
		"traces": func(f xconnector.Factory, cfg *Config) (*input, error) {
			c, err := f.CreateTracesToTraces(t.Context(), set, cfg, consumertest.NewNop())
			return c.(*input), err
		},
		"metrics": func(f xconnector.Factory, cfg *Config) (*input, error) {
			c, err := f.CreateTracesToMetrics(t.Context(), set, cfg, consumertest.NewNop())
			return c.(*input), err
		},
		"profiles": func(f xconnector.Factory, cfg *Config) (*input, error) {
			c, err := f.CreateTracesToProfiles(t.Context(), set, cfg, consumertest.NewNop())
			return c.(*input), err
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := NewFactory().(xconnector.Factory)
			cfg := f.CreateDefaultConfig().(*Config)
			for range 2 {
				c, err := start(f, cfg)
				require.NoError(t, err)
				require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
				require.NoError(t, c.Shutdown(t.Context()))
				require.NoError(t, c.Shutdown(t.Context()))
			}
			c, err := start(f, cfg)
			require.NoError(t, err)
			require.NoError(t, c.Shutdown(t.Context()))
		})
	}
}

func TestARatioThatKeepsNoTraceIsRefused(t *testing.T) {
	for _, ratio := range []float64{1e-300, 1e-18, leastRatio / 2} {
		require.ErrorContains(t, keeping(patient(), KeepConfig{Ratio: ratio}).Validate(), "keeps no trace")
	}
	for _, ratio := range []float64{leastRatio, 1e-15, 1} {
		cfg := keeping(patient(), KeepConfig{Ratio: ratio})
		require.NoError(t, cfg.Validate())
		assert.Less(t, cfg.Keep.Get().threshold(), uint64(random))
	}
}

func TestTimesThatContradictEachOtherAreRefused(t *testing.T) {
	const dropped = ", and the first calls of such a trace would be dropped after keep.decide_after, 1m0s: set keep.decide_after above "
	function := func(slowerThan time.Duration) KeepConfig {
		return KeepConfig{Functions: []FunctionConfig{{Name: "f", SlowerThan: time.Second}, {Name: "g", SlowerThan: slowerThan}}, DecideAfter: time.Minute}
	}
	for name, test := range map[string]struct {
		keep             KeepConfig
		shorterThan, min time.Duration
		want             string
	}{
		"a trace is slow before it is decided in pieces":              {keep: KeepConfig{SlowerThan: 59 * time.Second, DecideAfter: time.Minute}},
		"a trace is slow when it is decided in pieces":                {keep: KeepConfig{SlowerThan: time.Minute, DecideAfter: time.Minute}, want: "keep.slower_than is 1m0s" + dropped + "1m0s"},
		"a trace is slow after it is decided in pieces":               {keep: KeepConfig{SlowerThan: 2 * time.Minute, DecideAfter: time.Minute}, want: "keep.slower_than is 2m0s" + dropped + "2m0s"},
		"a call is slow before its trace is decided in pieces":        {keep: function(59 * time.Second)},
		"a call is slow after its trace is decided in pieces":         {keep: function(time.Hour), want: "keep.functions[1].slower_than is 1h0m0s" + dropped + "1h0m0s"},
		"some repeated calls are longer than min_duration":            {keep: KeepConfig{Ratio: 1, DecideAfter: time.Minute}, shorterThan: 2 * time.Millisecond, min: time.Millisecond},
		"min_duration leaves out all repeated calls":                  {keep: KeepConfig{Ratio: 1, DecideAfter: time.Minute}, shorterThan: time.Millisecond, min: time.Millisecond, want: "fold_repeated.shorter_than is 1ms, and min_duration leaves out all of these calls: set it above min_duration, 1ms, or remove it"},
		"min_duration without fold_repeated":                          {keep: KeepConfig{Ratio: 1, DecideAfter: time.Minute}, min: time.Millisecond},
		"a decide_after that is no time has an error of its own only": {keep: KeepConfig{Ratio: 1}, want: "keep.decide_after is 0s: set it to 1s to 24h0m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := createDefaultConfig().(*Config)
			cfg.Keep, cfg.FoldRepeated.ShorterThan, cfg.MinDuration = configoptional.Some(test.keep), test.shorterThan, test.min
			if err := cfg.Validate(); test.want == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, test.want)
			}
		})
	}
}

func TestAValueOfAWrongFormIsAnErrorWithTheExpectedForm(t *testing.T) {
	for _, test := range []struct {
		raw  map[string]any
		want string
	}{
		{map[string]any{"keep": map[string]any{"slower_than": 100}}, "keep.slower_than is 100: write a time with its unit, such as 100ms or 1s"},
		{
			map[string]any{"keep": map[string]any{"functions": []any{map[string]any{"name": "f", "slower_than": 20}}}},
			"keep.functions[0].slower_than is 20: write a time with its unit",
		},
		{map[string]any{"interval": 10}, "interval is 10: write a time with its unit"},
		{map[string]any{"min_duration": 10}, "min_duration is 10: write a time with its unit"},
		{map[string]any{"metrics": map[string]any{"expiration": 10}}, "metrics.expiration is 10: write a time with its unit"},
		{map[string]any{"fold_repeated": map[string]any{"shorter_than": 1}}, "fold_repeated.shorter_than is 1: write a time with its unit"},
		{map[string]any{"interval": "10"}, `interval is "10": write a time with its unit`},
		{map[string]any{"fold_repeated": true}, "fold_repeated is true: write fold_repeated: {shorter_than: 1ms}"},
		{map[string]any{"fold_repeated": "2ms"}, "fold_repeated is 2ms: write fold_repeated: {shorter_than: 1ms}"},
		{map[string]any{"keep": true}, "keep is true: write criteria below it, such as keep: {slower_than: 100ms}"},
		{map[string]any{"keep": map[string]any{"functions": []any{"f"}}}, "keep.functions is [f]: write a list of names, such as keep: {functions: [{name: f}]}"},
		{map[string]any{"keep": map[string]any{"functions": "f"}}, "keep.functions is f: write a list of names"},
	} {
		require.ErrorContains(t, confmap.NewFromStringMap(test.raw).Unmarshal(createDefaultConfig()), test.want)
	}
	cfg := createDefaultConfig().(*Config)
	raw := map[string]any{"keep": map[string]any{"slower_than": "100ms", "functions": []any{map[string]any{"name": "f", "slower_than": 0}}}, "fold_repeated": nil}
	require.NoError(t, confmap.NewFromStringMap(raw).Unmarshal(cfg))
	assert.Equal(t, 100*time.Millisecond, cfg.Keep.Get().SlowerThan)
}

func TestSettingsWithoutAPipelineAreLoggedAtTheStart(t *testing.T) {
	cfg := keeping(patient(), KeepConfig{Ratio: 1})
	cfg.FoldRepeated.ShorterThan, cfg.Profiles.ByThread, cfg.Limits.MaxSumsMiB, cfg.Limits.MaxHeldMiB = time.Millisecond, true, 100, 7
	for name, test := range map[string]struct {
		to   outputs
		want map[string][]any
	}{
		"all":     {allOutputs(), map[string][]any{}},
		"traces":  {outputs{traces: newOutput()}, map[string][]any{"metrics": {"metrics"}, "profiles": {"profiles"}, "metrics or profiles": {"interval", "limits.max_sums_mib"}}},
		"metrics": {outputs{metrics: newOutput()}, map[string][]any{"traces": {"keep", "fold_repeated", "limits.max_undecided_mib"}, "profiles": {"profiles"}, "traces or profiles": {"limits.max_held_mib"}}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, cfg, test.to)
			got := map[string][]any{}
			for _, line := range b.logs.FilterMessageSnippet("no effect").All() {
				got[line.ContextMap()["signal"].(string)] = line.ContextMap()["settings"].([]any)
			}
			assert.Equal(t, test.want, got)
			b.shut()
		})
	}
	for name, test := range map[string]struct {
		change func(*Config)
		want   []any
	}{
		"the defaults":          {func(*Config) {}, nil},
		"settings of all calls": {func(c *Config) { c.Truncated, c.Reorder.MaxWait, c.IdleTimeout = "drop", time.Second, time.Hour }, nil},
		"settings of spans only": {
			func(c *Config) {
				c.TraceRoots, c.MaxSpansPerTrace, c.MinDuration, c.MaxDepth = []string{"f"}, 7, time.Millisecond, 7
				c.SpanAttributes.Sequence, c.Limits.MaxUndecidedMiB = true, 7
			},
			[]any{"trace_roots", "max_spans_per_trace", "min_duration", "max_depth", "span_attributes", "limits.max_undecided_mib"},
		},
	} {
		t.Run(name+" without spans", func(t *testing.T) {
			cfg := createDefaultConfig().(*Config)
			test.change(cfg)
			b := newBench(t, cfg, outputs{metrics: newOutput()})
			if test.want == nil {
				assert.Zero(t, b.logs.Len())
			} else {
				require.Equal(t, 1, b.logs.Len())
				assert.Equal(t, test.want, b.logs.All()[0].ContextMap()["settings"])
			}
			b.shut()
		})
	}
}

// No call waits without a selection of traces.
func TestSettingsWithoutKeepAreLoggedAtTheStart(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Config)
		to     outputs
		lines  int
	}{
		"the defaults":        {func(*Config) {}, allOutputs(), 0},
		"without both":        {func(c *Config) { c.Limits.MaxUndecidedMiB = 7 }, allOutputs(), 1},
		"with keep":           {func(c *Config) { keeping(c, KeepConfig{Ratio: 1}) }, allOutputs(), 0},
		"with fold_repeated":  {func(c *Config) { c.Limits.MaxUndecidedMiB, c.FoldRepeated.ShorterThan = 7, time.Second }, allOutputs(), 0},
		"another line has it": {func(c *Config) { c.Limits.MaxUndecidedMiB = 7 }, outputs{metrics: newOutput()}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := patient()
			test.change(cfg)
			b := newBench(t, cfg, test.to)
			defer b.shut()
			lines := b.logs.FilterMessageSnippet("without keep and fold_repeated")
			require.Equal(t, test.lines, lines.Len())
			if test.lines > 0 {
				assert.Equal(t, []any{"limits.max_undecided_mib"}, lines.All()[0].ContextMap()["settings"])
			}
		})
	}
}

// The Collector shuts down only what it could build.
func TestAConnectorThatIsNeverShutDownIsForgotten(t *testing.T) {
	all := shared{made: map[weak.Pointer[Config]]weak.Pointer[pairer]{}}
	made := func() int {
		all.mu.Lock()
		defer all.mu.Unlock()
		return len(all.made)
	}
	set := connectortest.NewNopSettings(metadata.Type)
	cfg := createDefaultConfig().(*Config)
	_, err := all.input(set, createDefaultConfig().(*Config), true, func(*pairer) {})
	require.NoError(t, err)
	first, err := all.input(set, cfg, true, func(*pairer) {})
	require.NoError(t, err)
	require.Equal(t, 2, made())
	require.True(t, testkit.Happens(func() bool {
		runtime.GC()
		return made() == 1
	}))
	second, err := all.input(set, cfg, false, func(*pairer) {})
	require.NoError(t, err)
	assert.Same(t, first.pairer, second.pairer)
	require.NoError(t, first.Shutdown(t.Context()))
	assert.Zero(t, made())
}

// signalCore is the core of a logger that names a signal in every line, as that of the Collector does.
type signalCore struct {
	zapcore.Core
	dropped *[]string
}

func (c signalCore) DropInjectedAttributes(names ...string) zapcore.Core {
	*c.dropped = append(*c.dropped, names...)
	return c.Core
}

// All outputs share the logger of the first one.
func TestLogLinesNameNoSignal(t *testing.T) {
	var dropped []string
	set := connectortest.NewNopSettings(metadata.Type)
	set.Logger = zap.New(signalCore{zapcore.NewNopCore(), &dropped})
	_, err := NewFactory().CreateTracesToMetrics(t.Context(), set, createDefaultConfig(), consumertest.NewNop())
	require.NoError(t, err)
	assert.Contains(t, dropped, "otelcol.signal")
}
