// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngagent_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

func pattern(t testing.TB, text string) lttngagent.Pattern {
	t.Helper()
	p, err := lttngagent.ParsePattern(text)
	require.NoError(t, err)
	return p
}

func filter(t testing.TB, text string) lttngagent.Filter {
	t.Helper()
	f, err := lttngagent.ParseFilter(text)
	require.NoError(t, err)
	return f
}

func levels(t testing.TB, kind lttngagent.LevelType, level lttngagent.Level) lttngagent.Levels {
	t.Helper()
	l, err := lttngagent.NewLevels(kind, level)
	require.NoError(t, err)
	return l
}

func appContext(t testing.TB) lttngagent.Context {
	t.Helper()
	c, err := lttngagent.NewContext("p", "ctx")
	require.NoError(t, err)
	return c
}

// field returns the hexadecimal digits of a name in a field of 256 bytes.
func field(digits string) string { return digits + strings.Repeat("00", 256-len(digits)/2) }

var (
	v2  = lttngagent.Agent{Dialect: lttngagent.V2, Domain: lttngagent.JUL}
	rfc = lttngagent.Agent{Dialect: lttngagent.RFC, Domain: lttngagent.JUL}
)

func TestCommandsHaveTheBytesOfTheDocument(t *testing.T) {
	for _, c := range []struct {
		name    string
		agent   lttngagent.Agent
		command lttngagent.Command
		bytes   string
	}{
		{"list", v2, lttngagent.List{}, "0000000000000000 00000001 00000000"},
		{"registration done", v2, lttngagent.RegistrationDone{}, "0000000000000000 00000004 00000000"},
		{"everything", v2, lttngagent.Enable{Logger: pattern(t, "*")},
			"000000000000010c 00000002 00000000 80000000 00000000" + field("2a") + "00000000"},
		{"a logger, one level, a filter", v2,
			lttngagent.Enable{Logger: pattern(t, "a.b"), Levels: levels(t, lttngagent.SingleLevel, 800), Filter: filter(t, "x")},
			"000000000000010e 00000002 00000000 00000320 00000002" + field("612e62") + "00000002 7800"},
		{"a level below 0", v2, lttngagent.Enable{Logger: pattern(t, "a"), Levels: levels(t, lttngagent.LevelRange, -1)},
			"000000000000010c 00000002 00000000 ffffffff 00000001" + field("61") + "00000000"},
		{"a name of the maximum length", v2, lttngagent.Disable{Logger: pattern(t, strings.Repeat("x", 255))},
			"0000000000000100 00000003 00000000" + strings.Repeat("78", 255) + "00"},
		{"the root logger", v2, lttngagent.Disable{}, "0000000000000100 00000003 00000000" + field("")},
		{"context on", v2, lttngagent.EnableContext{Context: appContext(t)},
			"000000000000000e 00000005 00000000 00000002 7000 00000004 63747800"},
		{"context off", v2, lttngagent.DisableContext{Context: appContext(t)},
			"000000000000000e 00000006 00000000 00000002 7000 00000004 63747800"},
		{"list of the RFC", rfc, lttngagent.List{}, "0000000000000000 0000000000000001 0000000000000000"},
		{"enable of the RFC", rfc, lttngagent.Enable{Logger: pattern(t, "a.b")},
			"0000000000000100 0000000000000002 0000000000000000" + field("612e62")},
		{"disable of the RFC", rfc, lttngagent.Disable{Logger: pattern(t, "a.b")},
			"0000000000000100 0000000000000003 0000000000000000" + field("612e62")},
	} {
		b, err := c.agent.AppendCommand([]byte("before"), c.command)
		require.NoError(t, err, c.name)
		assert.Equal(t, append([]byte("before"), unhex(t, c.bytes)...), b, c.name)
		q, err := readRequest(c.agent.Dialect, b[len("before"):])
		require.NoError(t, err, c.name)
		assert.Equal(t, c.command.Type(), q.Type, c.name)
		command, err := q.Command(c.agent.Dialect)
		require.NoError(t, err, c.name)
		assert.Equal(t, c.command, command, c.name)
	}
}

func TestUnsupportedCommandsCannotBeSent(t *testing.T) {
	python := lttngagent.Agent{Dialect: lttngagent.V2, Domain: lttngagent.Python}
	for _, c := range []struct {
		agent   lttngagent.Agent
		command lttngagent.Command
		err     string
	}{
		{python, lttngagent.EnableContext{Context: appContext(t)}, "enable context cannot be sent: Python's agent has no contexts"},
		{python, lttngagent.DisableContext{Context: appContext(t)}, "disable context cannot be sent: Python's agent has no contexts"},
		{v2, lttngagent.EnableContext{}, "enable context cannot be sent: the context has no name"},
		{v2, lttngagent.DisableContext{}, "disable context cannot be sent: the context has no name"},
		{rfc, lttngagent.EnableContext{Context: appContext(t)}, "enable context cannot be sent: agents of the RFC have no contexts"},
		{rfc, lttngagent.DisableContext{Context: appContext(t)}, "disable context cannot be sent: agents of the RFC have no contexts"},
		{rfc, lttngagent.RegistrationDone{}, "registration done cannot be sent: agents of the RFC do not register"},
		{rfc, lttngagent.Enable{Levels: levels(t, lttngagent.LevelRange, 0)}, "enable cannot be sent: agents of the RFC have no levels"},
		{rfc, lttngagent.Enable{Filter: filter(t, "x")}, "enable cannot be sent: agents of the RFC have no filters"},
	} {
		b, err := c.agent.AppendCommand([]byte("before"), c.command)
		var unsupported *lttngagent.UnsupportedError
		require.ErrorAs(t, err, &unsupported)
		assert.EqualError(t, err, c.err)
		assert.Equal(t, c.command.Type(), unsupported.Command)
		assert.Equal(t, "before", string(b))
		assert.Equal(t, err, c.agent.Supports(c.command))
	}
}

func TestCommandsHaveNames(t *testing.T) {
	names := []string{"list", "enable", "disable", "registration done", "enable context", "disable context"}
	for i, name := range names {
		command := lttngagent.CommandType(i + 1)
		assert.True(t, command.Known())
		assert.Equal(t, name, command.String())
	}
	for _, command := range []lttngagent.CommandType{0, 7} {
		assert.False(t, command.Known())
	}
	assert.Equal(t, "command 7", lttngagent.CommandType(7).String())
}
