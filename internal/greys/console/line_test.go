// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/javamethods"
)

func target(tb testing.TB, class, method string, regexp bool) javamethods.Target {
	tb.Helper()
	return javamethods.Target{Class: pattern(tb, class), Method: pattern(tb, method), Regexp: regexp}
}

func TestEachCommandHasItsLine(t *testing.T) {
	for _, tt := range []struct {
		command javamethods.Command
		line    string
	}{
		{javamethods.VersionCommand{}, "version"},
		{javamethods.SessionsCommand{}, "session"},
		{javamethods.MonitorCommand{Target: target(t, "demo.*", "*", false), Cycle: 5 * time.Second}, "monitor -c 5 demo.* *"},
		{javamethods.TraceCommand{Target: target(t, "demo.Shop", "check?ut", false)}, "trace demo.Shop check?ut"},
		{javamethods.TraceCommand{Target: target(t, "demo.Shop", "*", false), Limit: 2}, "trace -n 2 demo.Shop *"},
		{javamethods.StackCommand{Target: target(t, `demo\.(Shop|Pay)`, ".*", true), Limit: 1}, `stack -n 1 -E "demo\\.(Shop|Pay)" .*`},
		{javamethods.RecordCommand{Target: target(t, "demo.Shop$Inner", "<init>", false), Limit: math.MaxInt32}, "tt -t -n 2147483647 demo.Shop$Inner <init>"},
		{javamethods.RecordsCommand{}, "tt -l"},
		{javamethods.RecordDetailCommand{Index: 1001}, "tt -i 1001"},
		{javamethods.ClassesCommand{Class: pattern(t, "demo.*")}, "sc -d demo.*"},
		{javamethods.ClassesCommand{Class: pattern(t, `demo\..*`), Regexp: true, Fields: true}, `sc -d -f -E "demo\\..*"`},
		{javamethods.MethodsCommand{Target: target(t, "demo.Pay", "charge", false)}, "sm -d demo.Pay charge"},
		{javamethods.ResetCommand{Class: pattern(t, "*")}, "reset"},
	} {
		line, err := AppendLine(nil, tt.command)
		require.NoError(t, err)
		assert.Equal(t, tt.line, string(line))
		command, silence, err := ParseLine(tt.line)
		require.NoError(t, err)
		assert.Equal(t, tt.command, command)
		assert.Equal(t, Unchanged, silence)
	}
}

func TestInvalidCommandsHaveNoLine(t *testing.T) {
	all := target(t, "*", "*", false)
	for _, tt := range []struct {
		command javamethods.Command
		err     string
	}{
		{javamethods.TraceCommand{}, "a pattern is missing"},
		{javamethods.MethodsCommand{Target: javamethods.Target{Class: all.Class}}, "a pattern is missing"},
		{javamethods.TraceCommand{Target: all, Limit: -1}, "limit is -1: expected at least 0"},
		{javamethods.MonitorCommand{Target: all}, "cycle is 0s: expected whole seconds, from 1 to 2147483"},
		{javamethods.MonitorCommand{Target: all, Cycle: 1500 * time.Millisecond}, "cycle is 1.5s: expected whole seconds, from 1 to 2147483"},
		{javamethods.MonitorCommand{Target: all, Cycle: 600 * time.Hour}, "cycle is 600h0m0s: expected whole seconds, from 1 to 2147483"},
		{javamethods.RecordDetailCommand{Index: -1}, "index of a recorded call is -1: expected 0 to 2147483647"},
		{javamethods.RecordDetailCommand{Index: 1 << 31}, "index of a recorded call is 2147483648: expected 0 to 2147483647"},
		{nil, "the console has no command for <nil>"},
	} {
		_, err := AppendLine(nil, tt.command)
		require.EqualError(t, err, tt.err)
	}
}

// TestPatternsStayOneArgument tries characters of every kind at the beginning, at the end and in the middle of a
// pattern. No pattern may become an option, a second argument, or an expression, which would be a third argument.
func TestPatternsStayOneArgument(t *testing.T) {
	allowed := 0
	for c := rune(0); c < 0x2100; c++ {
		if c == 0x200 {
			c = 0x2000 // spaces and invisible marks
		}
		for _, text := range []string{string(c), string(c) + "E", "a" + string(c), "a" + string(c) + "b", string(c) + string(c), `\` + string(c)} {
			p, err := javamethods.NewPattern(text)
			if err != nil {
				continue
			}
			allowed++
			line, err := AppendLine(nil, javamethods.TraceCommand{Target: javamethods.Target{Class: p, Method: p}, Limit: 1})
			require.NoError(t, err)
			require.Equal(t, []string{"trace", "-n", "1", text, text}, arguments(string(line)))
			require.NotContains(t, string(line), "\x04")
			require.NotContains(t, string(line), "\n")
			require.False(t, strings.HasPrefix(text, "-"))
		}
	}
	assert.Greater(t, allowed, 2000)
}

// The expected values are results of the server's GaStringUtils.splitForArgument.
func TestLinesAreSplitAsTheServerSplitsThem(t *testing.T) {
	for line, want := range map[string][]string{
		"":                       nil,
		"  ":                     nil,
		"trace a b":              {"trace", "a", "b"},
		"trace   a    b  ":       {"trace", "a", "b"},
		`trace "a b" 'c d'`:      {"trace", "a b", "c d"},
		`trace a"b c"d`:          {"trace", `a"b`, `c"d`},
		`trace a\ b`:             {"trace", "a b"},
		`trace \* *`:             {"trace", "**"},
		`trace "\\" "\""`:        {"trace", `\`, `"`},
		`trace a\`:               {"trace", "a"},
		`trace "" ' ' a`:         {"trace", "a"},
		`"trace" a`:              {`"trace"`, "a"},
		`trace demo\\.Shop a\.b`: {"trace", `demo\.Shop`, "a.b"},
	} {
		assert.Equal(t, want, arguments(line), line)
	}
}

func TestInvalidLinesAreRefused(t *testing.T) {
	all := captures(t)
	for line, want := range map[string]string{
		"bogus":               string(all["notfound.raw"]),
		"monitor":             string(all["badarg.raw"]),
		"tt -da":              string(all["tt_da.raw"]),
		"trace -n x a b":      `Command "trace" preprocessor failed : Cannot parse argument 'x' of option n.`,
		"trace a b 1==1":      `Command "trace" preprocessor failed : expressions are not played.`,
		"tt":                  `Command "tt" preprocessor failed : Argument(s) is/are expected, type 'help tt' to read usage.`,
		`trace "a b" c`:       `Command "trace" preprocessor failed : pattern "a b" has ' ' at byte 1: the server would not read it as one argument.`,
		"trace a":             `Command "trace" preprocessor failed : method-pattern argument was missing..`,
		"version --x":         `Command "version" preprocessor failed : -x is not a recognized option.`,
		"reset -E demo.*":     `Command "reset" preprocessor failed : E is not a recognized option.`,
		"watch a b params[0]": `Command "watch" not found.`,
		"":                    "",
	} {
		_, _, err := ParseLine(line)
		var wrong *LineError
		require.ErrorAs(t, err, &wrong, line)
		assert.Equal(t, strings.TrimSuffix(want, "\n\x04"), wrong.Words, line)
	}
}

func TestASessionCommandSetsSilence(t *testing.T) {
	for line, want := range map[string]Silence{"session": Unchanged, setLoud: Loud, "session -s true": Silent} {
		command, silence, err := ParseLine(line)
		require.NoError(t, err)
		assert.Equal(t, javamethods.SessionsCommand{}, command)
		assert.Equal(t, want, silence, line)
	}
}

func TestMissingOptionsHaveDefaults(t *testing.T) {
	command, _, err := ParseLine("monitor a b")
	require.NoError(t, err)
	assert.Equal(t, javamethods.MonitorCommand{Target: target(t, "a", "b", false), Cycle: 2 * time.Minute}, command)
	command, _, err = ParseLine("sm -d a")
	require.NoError(t, err)
	assert.Equal(t, javamethods.MethodsCommand{Target: target(t, "a", "*", false)}, command)
}
