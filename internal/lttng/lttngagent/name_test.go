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

func TestNamesThatAgentsAcceptAreValid(t *testing.T) {
	for _, text := range []string{
		"", "*", "com.example.db", "com.example.*", "a*b", `a\*b`, "com.example with blanks", "größer.名前",
		strings.Repeat("x", lttngagent.MaxPattern),
	} {
		p, err := lttngagent.ParsePattern(text)
		require.NoError(t, err, text)
		assert.Equal(t, text, p.String())
	}
}

// wrongTexts are texts that cannot be sent, for any purpose, with a part of the error.
var wrongTexts = map[string]string{
	"nul\x00inside":          `without a NUL, got "nul\x00inside"`,
	"no \xff UTF-8":          "in UTF-8",
	" blank":                 "without blanks and control characters at its ends",
	"blank ":                 "without blanks and control characters at its ends",
	"line\n":                 "without blanks and control characters at its ends",
	strings.Repeat("é", 1e5): "bytes, got 200000",
}

func TestNamesThatAgentsDoNotAcceptAreErrors(t *testing.T) {
	for text, part := range wrongTexts {
		_, err := lttngagent.ParsePattern(text)
		assert.ErrorContains(t, err, part, "pattern")
		_, err = lttngagent.ParseFilter(text)
		assert.ErrorContains(t, err, part, "filter")
		_, err = lttngagent.NewContext(text, "name")
		assert.ErrorContains(t, err, part, "provider")
		_, err = lttngagent.NewContext("provider", text)
		assert.ErrorContains(t, err, part, "context")
	}
	_, err := lttngagent.ParsePattern(strings.Repeat("x", 256))
	assert.EqualError(t, err, "expected the name of a logger of at most 255 bytes, got 256")
}

func TestFiltersAreAsLongAsInLTTng(t *testing.T) {
	longest := strings.Repeat("x", lttngagent.MaxFilter)
	f, err := lttngagent.ParseFilter(longest)
	require.NoError(t, err)
	assert.Equal(t, longest, f.String())
	_, err = lttngagent.ParseFilter(longest + "x")
	assert.EqualError(t, err, "expected a filter of at most 65534 bytes, got 65535")
}

func TestContextsHaveAProviderAndAName(t *testing.T) {
	c, err := lttngagent.NewContext("myprov", "myctx")
	require.NoError(t, err)
	assert.Equal(t, []string{"myprov", "myctx", "myprov:myctx"}, []string{c.Provider(), c.Name(), c.String()})
	for _, parts := range [][2]string{{"", "name"}, {"provider", ""}} {
		_, err := lttngagent.NewContext(parts[0], parts[1])
		assert.EqualError(t, err, "expected a provider and a name of a context, got none")
	}
}
