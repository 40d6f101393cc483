// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontrol_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/agentcontrol"
)

func TestArgumentsAreWithinTheirBounds(t *testing.T) {
	command := &agentcontrol.Command{Name: "sample", Parameters: []agentcontrol.Parameter{
		{Name: "name", Kind: agentcontrol.Text},
		{Name: "short", Kind: agentcontrol.Text, MaxBytes: 2},
		{Name: "n", Kind: agentcontrol.Integer, Least: -5, Most: 10},
		{Name: "all", Kind: agentcontrol.Boolean},
	}}
	for _, c := range []struct{ name, value, wrong string }{
		{"name", "é", ""},
		{"name", strings.Repeat("x", agentcontrol.DefaultMaxBytes), ""},
		{"name", strings.Repeat("x", agentcontrol.DefaultMaxBytes+1), "at most 1024 bytes"},
		{"name", "\xff", "expected UTF-8"},
		{"name", "a\x00", "without NUL"},
		{"short", "é", ""},
		{"short", "éa", "at most 2 bytes, got 3"},
		{"n", "-5", ""},
		{"n", "10", ""},
		{"n", "-6", "from -5 to 10"},
		{"n", "11", "from -5 to 10"},
		{"n", "9999999999999999999999", "from -5 to 10"},
		{"all", "true", ""},
		{"all", "TRUE", "expected true or false"},
	} {
		arguments, err := command.Parse(map[string]string{c.name: c.value})
		if c.wrong != "" {
			assert.ErrorContains(t, err, c.wrong, "%s=%q", c.name, c.value)
			assert.Equal(t, agentcontrol.BadArgument, agentcontrol.ReasonOf(err))
			continue
		}
		require.NoError(t, err, "%s=%q", c.name, c.value)
		assert.Equal(t, c.value, arguments.Text(c.name))
	}
}

func TestACommandIsDisruptiveByItselfOrByAnArgument(t *testing.T) {
	long := &agentcontrol.Condition{Text: "it is long", Holds: func(value string) bool { return len(value) > 2 }}
	dump := &agentcontrol.Command{Name: "dump", Parameters: []agentcontrol.Parameter{
		{Name: "of", Kind: agentcontrol.Text, DisruptiveIf: long}, {Name: "by", Kind: agentcontrol.Text},
	}}
	for _, c := range []struct {
		written map[string]string
		want    string
	}{
		{nil, ""},
		{map[string]string{"of": "ab", "by": "abc"}, ""},
		{map[string]string{"of": "abc"}, "dump with of=abc"},
	} {
		arguments, err := dump.Parse(c.written)
		require.NoError(t, err)
		assert.Equal(t, c.want, dump.Disruption(arguments))
	}
	assert.Equal(t, "stop", (&agentcontrol.Command{Name: "stop", Disruptive: true}).Disruption(agentcontrol.Arguments{}))
}

func TestAnErrorHasAReason(t *testing.T) {
	for _, c := range []struct {
		err  error
		want agentcontrol.Reason
	}{
		{agentcontrol.Errorf(agentcontrol.Refused, "no"), agentcontrol.Refused},
		{fmt.Errorf("wrapped: %w", agentcontrol.Errorf(agentcontrol.Refused, "no")), agentcontrol.Refused},
		{context.Canceled, agentcontrol.NoAnswer},
		{fmt.Errorf("wrapped: %w", context.DeadlineExceeded), agentcontrol.NoAnswer},
		{errors.New("connection reset"), agentcontrol.Lost},
	} {
		assert.Equal(t, c.want, agentcontrol.ReasonOf(c.err), c.err.Error())
	}
}
