// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasreceiver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/arthas"
	"github.com/callbraid/callbraid/internal/arthas/sim/capture"
	"github.com/callbraid/callbraid/internal/testkit/profiletest"
)

// valuesOf returns the values of a message with one profile by stack, the caller first, with the type of each frame.
func valuesOf(t testing.TB, profiles pprofile.Profiles) map[string]int64 {
	t.Helper()
	profiletest.CheckValid(t, profiles)
	d := profiles.Dictionary()
	values := map[string]int64{}
	for _, sample := range only(t, profiles).Samples().All() {
		stack := ""
		for _, i := range d.StackTable().At(int(sample.StackIndex())).LocationIndices().All() {
			location := d.LocationTable().At(int(i))
			function := d.FunctionTable().At(int(location.Lines().At(0).FunctionIndex()))
			kind := d.AttributeTable().At(int(location.AttributeIndices().At(0)))
			stack = fmt.Sprintf(";%s %s%s", d.StringTable().At(int(function.NameStrindex())), kind.Value().Str(), stack)
		}
		values[stack[1:]] += sample.Values().At(0)
	}
	return values
}

func only(t testing.TB, profiles pprofile.Profiles) pprofile.Profile {
	t.Helper()
	all := profiles.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles()
	require.Equal(t, 1, all.Len())
	return all.At(0)
}

// periodStarts is the period that profileOf maps.
var periodStarts = time.Date(2026, 11, 28, 17, 0, 0, 0, time.UTC)

// profileOf maps a profile with a configuration, and returns the messages.
func profileOf(t *testing.T, profile *arthas.Profiler, change func(*Config)) (*bed, []pprofile.Profiles) {
	server, endpoint := newServer(t, nil)
	b := newBed(t, server, endpoint, func(c *Config) {
		c.JVM.Interval = time.Hour
		change(c)
	})
	b.Start()
	env, origin := b.receiver.env, b.receiver.servers[0].current.Load
	b.Await("a process", func() bool { return origin() != nil })
	out := &profileOutput{env: env, logger: zap.NewNop(), origin: origin}
	out.Profile(profile, periodStarts, periodStarts.Add(time.Minute))
	b.Shutdown()
	return b, b.Profiles.AllProfiles()
}

// captured returns the profile of the capture.
func captured(t testing.TB) *arthas.Profiler {
	exchanges, err := capture.Read("../../testdata/arthas/61-profiler-execute.txt")
	require.NoError(t, err)
	const begin, end = `"executeResult":"`, `","jobId"`
	for _, e := range exchanges {
		if strings.Contains(e.Request, "stop,collapsed") {
			_, text, _ := strings.Cut(e.Answer, begin)
			text, _, _ = strings.Cut(text, end)
			return &arthas.Profiler{Text: strings.ReplaceAll(text, `\n`, "\n")}
		}
	}
	t.Fatal("the capture has no profile")
	return nil
}

// The program was in spin for 0.3 s. The values are those of the capture.
func TestACapturedProfileIsMapped(t *testing.T) {
	profile := captured(t)
	var malformed, sum int64
	for stack := range profile.Stacks(&malformed) {
		sum += stack.Value
	}
	b, messages := profileOf(t, profile, func(c *Config) { c.Profiles.Interval = 10 * time.Millisecond })
	require.Len(t, messages, 1)
	values := valuesOf(t, messages[0])
	all, spin := int64(0), int64(0)
	for stack, value := range values {
		all += value
		if strings.HasPrefix(stack, "demo.Shop.main jvm;demo.Shop.spin jvm") {
			spin += value
		}
	}
	assert.Equal(t, sum, all)
	assert.EqualValues(t, 180138862, spin)
	kinds := strings.Join(keysOf(values), ";")
	for _, frame := range []string{"java.lang.Thread.run jvm", "demo.Shop$$Lambda$1.run jvm", "Unsafe_Park native", "do_syscall_64 kernel"} {
		assert.Contains(t, kinds, frame)
	}
	p, d := only(t, messages[0]), messages[0].Dictionary()
	text := func(i int32) string { return d.StringTable().At(int(i)) }
	assert.Equal(t, "cpu nanoseconds", text(p.SampleType().TypeStrindex())+" "+text(p.SampleType().UnitStrindex()))
	assert.Equal(t, "cpu nanoseconds", text(p.PeriodType().TypeStrindex())+" "+text(p.PeriodType().UnitStrindex()))
	assert.EqualValues(t, 10_000_000, p.Period())
	assert.Equal(t, periodStarts, p.Time().AsTime())
	assert.EqualValues(t, time.Minute, p.DurationNano())
	assert.False(t, p.ProfileID().IsEmpty())
	pid, _ := messages[0].ResourceProfiles().At(0).Resource().Attributes().Get("process.pid")
	assert.EqualValues(t, 12058, pid.Int())
	assert.Zero(t, b.Counter("profile_lines_malformed")+b.Counter("profile_bytes_dropped")+b.Counter("profile_stacks_folded"))
}

func keysOf(values map[string]int64) (keys []string) {
	for key := range values {
		keys = append(keys, key)
	}
	return keys
}

func TestEqualStacksAreOneSample(t *testing.T) {
	_, messages := profileOf(t, &arthas.Profiler{Text: "a/B.c_[0] 1\na/B.c_[j] 2\na/B.c 4\n"}, func(*Config) {})
	assert.Equal(t, map[string]int64{"a.B.c jvm": 3, "a/B.c native": 4}, valuesOf(t, messages[0]))
	assert.Equal(t, 2, only(t, messages[0]).Samples().Len())
}

func TestObjectsOutsideOfAThreadsMemoryAreJavas(t *testing.T) {
	profile := &arthas.Profiler{Text: "a/B.c_[j];byte[]_[i] 1\na/B.c_[j];byte[]_[k] 2\n"}
	_, messages := profileOf(t, profile, func(c *Config) { c.Profiles.Event = "alloc" })
	assert.Equal(t, map[string]int64{"a.B.c jvm;byte[] jvm": 3}, valuesOf(t, messages[0]))
	d := messages[0].Dictionary()
	of := only(t, messages[0]).SampleType()
	assert.Equal(t, "alloc_space bytes", d.StringTable().At(int(of.TypeStrindex()))+" "+d.StringTable().At(int(of.UnitStrindex())))
	assert.Zero(t, only(t, messages[0]).Period())
}

func TestStacksWithoutRoomAreSummed(t *testing.T) {
	b, messages := profileOf(t, &arthas.Profiler{Text: "a 1\nb 2\nc 4\na 8\nd 16\nbroken\n", Cut: 7}, func(c *Config) { c.Limits.MaxProfileStacks = 2 })
	assert.Equal(t, map[string]int64{"a native": 9, "b native": 2, "(further stacks) native": 20}, valuesOf(t, messages[0]))
	assert.EqualValues(t, 2, b.Counter("profile_stacks_folded"))
	assert.EqualValues(t, 7, b.Counter("profile_bytes_dropped"))
	assert.EqualValues(t, 1, b.Counter("profile_lines_malformed"))
}

func TestAProfileWithoutStacksIsNone(t *testing.T) {
	_, messages := profileOf(t, &arthas.Profiler{Text: "\n"}, func(*Config) {})
	assert.Empty(t, messages)
}

func TestProfilesOfAServerEqualItsTruth(t *testing.T) {
	server, endpoint := newServer(t, nil)
	b := newBed(t, server, endpoint, func(c *Config) { c.Profiles.Period = time.Second })
	b.Start()
	b.Await("two profiles", func() bool {
		server.Call(buy(20 * time.Millisecond))
		return len(b.Profiles.AllProfiles()) >= 2
	})
	b.Shutdown()
	sums := map[string]int64{}
	for _, message := range b.Profiles.AllProfiles() {
		for stack, value := range valuesOf(t, message) {
			sums[stack] += value
		}
	}
	truth := server.Lives()[0]
	assert.False(t, truth.Profiling)
	const outer = "java.lang.Thread.run jvm;demo.Shop.buy jvm"
	assert.Len(t, sums, 2)
	assert.EqualValues(t, truth.Profiled, sums[outer]+sums[outer+";demo.Shop.row jvm"])
	assert.Equal(t, 19*sums[outer+";demo.Shop.row jvm"], sums[outer], "a row takes 1 ms of the 20 ms")
	assert.EqualValues(t, truth.Profiles, b.Counter("profile_periods"))
	b.awaitRestored()
}

func TestWithoutAPipelineTheProfilerIsNotStarted(t *testing.T) {
	server, endpoint := newServer(t, nil)
	b := newBed(t, server, endpoint, func(c *Config) {
		c.Profiles.Period = time.Second
		c.JVM.Interval = time.Second
	})
	b.Next.Profiles = nil
	b.Start()
	b.Await("the state of the JVM", func() bool { return len(b.points("jvm.memory.used")) > 0 })
	b.Shutdown()
	assert.Zero(t, server.Lives()[0].Profiles)
}

func TestWhyAPeriodHasNoProfileIsLoggedOnce(t *testing.T) {
	server, endpoint := newServer(t, nil)
	server.StartProfiler()
	b := newBed(t, server, endpoint, func(c *Config) { c.Profiles.Period = time.Second })
	b.Start()
	const foreign = "Somebody else uses the program's profiler. The receiver tries again after a period"
	b.Await("two periods", func() bool { return b.Counter("profile_periods") == 2 })
	assert.Equal(t, 1, b.Lines(foreign))
	assert.Contains(t, fmt.Sprint(b.Points()), "profile_periods{outcome=foreign}:2")
	b.Shutdown()
	assert.True(t, server.IsProfiling())
}
