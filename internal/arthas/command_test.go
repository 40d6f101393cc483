// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthas_test

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/arthas"
	"github.com/callbraid/callbraid/internal/arthas/sim/arthasserver"
	"github.com/callbraid/callbraid/internal/javamethods"
)

func pattern(t testing.TB, text string) javamethods.Pattern {
	t.Helper()
	p, err := arthas.NewPattern(text)
	require.NoError(t, err)
	return p
}

func expression(t testing.TB, text string) arthas.Expression {
	t.Helper()
	e, err := arthas.NewExpression(text)
	require.NoError(t, err)
	return e
}

func TestCommandLines(t *testing.T) {
	shop := target(t, "demo.Shop", "buy")
	wide := arthas.Target{Target: javamethods.Target{Class: pattern(t, `demo\.(Shop|Pay)`), Method: pattern(t, ".*"), Regexp: true}, Exclude: pattern(t, "demo.Test*"), MaxClasses: 3}
	for _, tt := range []struct {
		command arthas.Command
		line    string
	}{
		{arthas.VersionCommand{}, "version"},
		{arthas.SessionCommand{}, "session"},
		{arthas.MonitorCommand{Target: shop, Cycle: 5 * time.Second, Limit: 3}, "monitor -c 5 -n 3 -- demo.Shop buy"},
		{arthas.MonitorCommand{Target: wide, Cycle: time.Second}, `monitor -c 1 -E -m 3 --exclude-class-pattern demo.Test* -- 'demo\.(Shop|Pay)' .*`},
		{arthas.TraceCommand{Target: shop, Limit: arthas.MaxLimit, Condition: arthas.LongerThan(1500 * time.Microsecond)}, "trace -n 2147483647 -- demo.Shop buy '#cost>1.5'"},
		{arthas.TraceCommand{Target: shop, JDKMethods: true}, "trace --skipJDKMethod false -- demo.Shop buy"},
		{arthas.StackCommand{Target: shop}, "stack -- demo.Shop buy"},
		{
			arthas.WatchCommand{Target: shop, Exception: true, Success: true, Value: expression(t, "{params, throwExp}"), Depth: 2, Condition: expression(t, "-1<params[0]")},
			"watch -s -e -x 2 -- demo.Shop buy '{params, throwExp}' '-1<params[0]'",
		},
		{arthas.WatchCommand{Target: shop, Value: expression(t, `params[0]=='x'`)}, `watch -- demo.Shop buy 'params[0]=='\''x'\'''`},
		{
			arthas.WatchCommand{Target: shop, Value: expression(t, "params"), TraceID: expression(t, `@org.slf4j.MDC@get("a)]b")`), Condition: expression(t, "true")},
			`watch -x 2 -- demo.Shop buy '{(@org.slf4j.MDC@get("a)]b")),(null),(params)}' true`,
		},
		{arthas.RecordCommand{Target: shop, Limit: 6}, "tt -t -n 6 -- demo.Shop buy"},
		{arthas.RecordsCommand{}, "tt -l"},
		{arthas.RecordDetailCommand{Index: 1000}, "tt -i 1000"},
		{arthas.ForgetRecordCommand{Index: 1000}, "tt -d -i 1000"},
		{arthas.ClassesCommand{Class: pattern(t, "demo.*")}, "sc -- demo.*"},
		{arthas.ClassesCommand{Class: pattern(t, "demo.*"), Details: true, Max: 7}, "sc -d -n 7 -- demo.*"},
		{arthas.MethodsCommand{Class: pattern(t, "demo.Shop$Order")}, "sm -- demo.Shop$Order"},
		{arthas.MethodsCommand{Class: pattern(t, "demo.Shop"), Method: pattern(t, "<init>"), Details: true}, "sm -d -- demo.Shop '<init>'"},
		{arthas.ResetCommand{Class: pattern(t, "demo.Shop")}, "reset -- demo.Shop"},
		{arthas.ResetCommand{Class: pattern(t, "demo.+"), Regexp: true}, "reset -E -- 'demo.+'"},
		{arthas.ResetAllCommand{}, "reset"},
		{arthas.ThreadsCommand{}, "thread --all"},
		{arthas.ThreadsCommand{Busiest: 3, Sample: time.Second}, "thread -i 1000 -n 3"},
		{arthas.MemoryCommand{}, "memory"},
		{arthas.DashboardCommand{Interval: time.Second, Limit: 3}, "dashboard -i 1000 -n 3"},
		{arthas.JVMCommand{}, "jvm"},
		{arthas.StartProfilerCommand{Event: arthas.ProfileWall, Interval: 20 * time.Millisecond, Timeout: time.Minute}, "profiler execute 'start,event=wall,interval=20000000,timeout=60'"},
		{arthas.StartProfilerCommand{Event: arthas.ProfileCPU, Timeout: time.Second}, "profiler execute 'start,event=cpu,timeout=1'"},
		{arthas.StartProfilerCommand{Event: arthas.ProfileAlloc, Timeout: time.Second}, "profiler execute 'start,event=alloc,timeout=1'"},
		{arthas.ProfilerStatusCommand{}, "profiler status"},
		{arthas.StopProfilerCommand{MaxText: 1}, "profiler execute 'stop,collapsed,total,ann,norm'"},
	} {
		line, err := arthas.CommandLine(tt.command)
		require.NoError(t, err)
		assert.Equal(t, tt.line, line)
	}
}

func TestWrongCommandsHaveNoLine(t *testing.T) {
	shop := target(t, "demo.Shop", "buy")
	bar, err := javamethods.NewPattern("a|")
	require.NoError(t, err)
	for _, tt := range []struct {
		command arthas.Command
		problem string
	}{
		{arthas.ResetCommand{Class: bar, Regexp: true}, `argument "a|" begins or ends with a vertical bar: the server would read it as a pipe`},
		{arthas.MonitorCommand{Target: shop}, "cycle is 0s: expected whole seconds, at least 1s"},
		{arthas.MonitorCommand{Target: shop, Cycle: 1500 * time.Millisecond}, "cycle is 1.5s: expected whole seconds, at least 1s"},
		{arthas.TraceCommand{}, "the command has no pattern of classes or none of methods"},
		{arthas.TraceCommand{Target: shop, Limit: -1}, "option -n is -1: expected at least 0"},
		{arthas.WatchCommand{Target: shop, Condition: expression(t, "true")}, "the command has a condition and no value: the server would read the condition as the value"},
		{arthas.WatchCommand{Target: shop, TraceID: expression(t, "a")}, "the command has an ID and no value, or an ID of a span and none of a trace"},
		{arthas.WatchCommand{Target: shop, Value: expression(t, "a"), SpanID: expression(t, "a")}, "the command has an ID and no value, or an ID of a span and none of a trace"},
		{arthas.WatchCommand{Target: shop, Value: expression(t, "a}"), TraceID: expression(t, "a")}, `expression "a}" has '}' at byte 1 without its counterpart`},
		{arthas.WatchCommand{Target: shop, Value: expression(t, "a"), TraceID: expression(t, "(a")}, `expression "(a" has no ')' at its end`},
		{arthas.WatchCommand{Target: shop, Value: expression(t, "a"), TraceID: expression(t, `"a\"`)}, `expression "\"a\\\"" has no second '"'`},
		{arthas.ResetCommand{}, "the command has no pattern of classes"},
		{arthas.ClassesCommand{}, "the command has no pattern of classes"},
		{arthas.MethodsCommand{}, "the command has no pattern of classes"},
		{arthas.RecordDetailCommand{}, "the command has no index of a record"},
		{arthas.ForgetRecordCommand{}, "the command has no index of a record"},
		{arthas.DashboardCommand{Interval: time.Microsecond}, "option -i is 1µs: expected whole milliseconds"},
		{arthas.StartProfilerCommand{Timeout: time.Second}, `the profiler's event is "": expected one of the constants`},
		{arthas.StartProfilerCommand{Event: "cpu,file=/tmp/x", Timeout: time.Second}, `the profiler's event is "cpu,file=/tmp/x": expected one of the constants`},
		{arthas.StartProfilerCommand{Event: arthas.ProfileLock, Interval: 1, Timeout: time.Second}, `the profiler's event "lock" has no interval of time`},
		{arthas.StartProfilerCommand{Event: arthas.ProfileCPU, Interval: -1, Timeout: time.Second}, "interval is -1ns: expected at least 0"},
		{arthas.StartProfilerCommand{Event: arthas.ProfileCPU}, "timeout is 0s: expected whole seconds, at least 1s"},
		{arthas.StopProfilerCommand{}, "the command has no maximum length of the stacks"},
	} {
		_, err := arthas.CommandLine(tt.command)
		assert.EqualError(t, err, tt.problem)
	}
}

func TestArgumentsThatTheServerWouldReadAsSomethingElse(t *testing.T) {
	for text, problem := range map[string]string{
		">":    `pattern is ">": the server would write its results to a file`,
		">>":   `pattern is ">>": the server would write its results to a file`,
		"&":    `pattern is "&": the server would run the command in the background`,
		"|":    `pattern "|" begins or ends with a vertical bar: the server would read it as a pipe`,
		"a|b|": `pattern "a|b|" begins or ends with a vertical bar: the server would read it as a pipe`,
		"|a":   `pattern "|a" begins or ends with a vertical bar: the server would read it as a pipe`,
		"-E":   `pattern "-E" begins with a hyphen: the server would read it as an option`,
		"a b":  `pattern "a b" has ' ' at byte 1: the server would not read it as one argument`,
		"a\n":  `pattern "a\n" has '\n' at byte 1: the server would not read it as one argument`,
	} {
		_, err := arthas.NewPattern(text)
		assert.EqualError(t, err, problem)
	}
	for text, problem := range map[string]string{
		"":                          "expression is empty: expected an OGNL expression, such as #cost>10",
		">":                         `expression is ">": the server would write its results to a file`,
		"&":                         `expression is "&": the server would run the command in the background`,
		"true |":                    `expression "true |" begins or ends with a vertical bar: the server would read it as a pipe`,
		"a\tb":                      `expression "a\tb" has '\t' at byte 1: expected printable characters`,
		"a\x00":                     `expression "a\x00" has '\x00' at byte 1: expected printable characters`,
		"a\xff":                     `expression "a\xff" is not UTF-8`,
		strings.Repeat("x", 4096+1): "expression has 4097 bytes: expected at most 4096",
	} {
		_, err := arthas.NewExpression(text)
		assert.EqualError(t, err, problem)
	}
}

// checkLine compares a line, as the server understands it, with its command.
func checkLine(t testing.TB, class, method, exclude, condition string) {
	t.Helper()
	texts := []string{class, method}
	command := arthas.MonitorCommand{Cycle: 7 * time.Second, Limit: 5}
	var err error
	if command.Class, err = arthas.NewPattern(class); err != nil {
		return
	}
	if command.Method, err = arthas.NewPattern(method); err != nil {
		return
	}
	options := map[string]string{"-c": "7", "-n": "5"}
	if command.Exclude, err = arthas.NewPattern(exclude); err == nil {
		options["--exclude-class-pattern"] = exclude
	}
	if command.Condition, err = arthas.NewExpression(condition); err == nil {
		texts = append(texts, condition)
	}
	line, err := arthas.CommandLine(command)
	require.NoError(t, err)
	want := arthasserver.Line{Command: "monitor", Options: options, Arguments: texts}
	assert.Equal(t, want, arthasserver.Parse(line), "%s", line)
}

func TestArgumentsOfAnyTextStayOneArgument(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	letters := []rune(`ab.*?$<>|&;-'"\ #(){}[]=!,:/` + "\t`é名😀")
	text := func() string {
		b := make([]rune, random.IntN(6))
		for i := range b {
			b[i] = letters[random.IntN(len(letters))]
		}
		return string(b)
	}
	for range 5_000 {
		checkLine(t, text(), text(), text(), text())
	}
}

func FuzzCommandLine(f *testing.F) {
	f.Add("demo.*", "buy", "demo.Test", "#cost>10")
	f.Add(`a'b`, `<init>`, `x|y`, `params[0]=='it''s \" > /tmp/x | grep & -E --'`)
	f.Add("--", "-E", ">", ">>")
	f.Fuzz(func(t *testing.T, class, method, exclude, condition string) {
		checkLine(t, class, method, exclude, condition)
	})
}

func TestACommandNeverWritesAFile(t *testing.T) {
	b := newBed(t)
	s := b.open()
	j := b.start(s, arthas.WatchCommand{Target: target(t, "demo.Shop", "buy"), Limit: 1, Value: expression(t, "' > ' + params[0] > /tmp/x")})
	b.server.Call(buy(time.Nanosecond))
	_, end := b.untilEnd(j)
	assert.Equal(t, arthas.EndFinished, end.Reason)
	assert.Empty(t, b.server.Redirected())
}

func TestLongerThanIsInMilliseconds(t *testing.T) {
	for d, text := range map[time.Duration]string{0: "#cost>0", time.Nanosecond: "#cost>0.000001", time.Hour: "#cost>3600000", 12345 * time.Microsecond: "#cost>12.345"} {
		assert.Equal(t, text, arthas.LongerThan(d).String(), strconv.Itoa(int(d)))
	}
}
