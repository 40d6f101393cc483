// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngagent_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

func TestDomainsHaveTheirNumbersAndNames(t *testing.T) {
	names := map[lttngagent.Domain]string{3: "jul", 4: "log4j", 5: "python", 6: "log4j2"}
	for _, d := range lttngagent.Domains() {
		assert.True(t, d.Valid())
		assert.Equal(t, names[d], d.String())
		parsed, err := lttngagent.ParseDomain(d.String())
		require.NoError(t, err)
		assert.Equal(t, d, parsed)
		delete(names, d)
	}
	assert.Empty(t, names)
	for _, d := range []lttngagent.Domain{0, 2, 7, 1 << 31} {
		assert.False(t, d.Valid(), "%d", uint32(d))
	}
	assert.Equal(t, "domain 7", lttngagent.Domain(7).String())
	for _, name := range []string{"", "JUL", "java", "domain 7"} {
		_, err := lttngagent.ParseDomain(name)
		assert.ErrorContains(t, err, "expected jul, log4j, log4j2 or python, got")
	}
}

func TestDialectsHaveNames(t *testing.T) {
	for name, want := range map[string]lttngagent.Dialect{"2.0": lttngagent.V2, "rfc": lttngagent.RFC} {
		got, err := lttngagent.ParseDialect(name)
		require.NoError(t, err)
		assert.Equal(t, want, got)
		assert.Equal(t, name, got.String())
	}
	_, err := lttngagent.ParseDialect("2.1")
	assert.EqualError(t, err, `expected 2.0 or rfc, got "2.1"`)
	assert.Equal(t, "dialect 2", lttngagent.Dialect(2).String())
}
