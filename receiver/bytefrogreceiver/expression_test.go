// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
)

// Java's own compiler (17) refused those that are refused, and took all others.
func TestExpressionsThatJavaRefusesAreRefusedAtStart(t *testing.T) {
	for expression, want := range map[string]string{
		`com.example.(`:  "missing closing )",
		`com/example/)`:  "unexpected )",
		`^com/[a-z`:      "missing closing ]",
		`^com/example\`:  "trailing backslash",
		`*Service`:       "missing argument to repetition operator",
		`^com/(+)`:       "missing argument to repetition operator",
		`^com/.**`:       "invalid nested repetition operator",
		`^com/(a|b`:      "missing closing )",
		``:               "",
		`^com/example/`:  "",
		`^com/(?=Order)`: "", `^com/(?<!Proxy)x`: "", `(?>a|b)c`: "",
		`^com/.*+Order`: "", `a?+b`: "", `a{2,3}+`: "",
		`[a-z&&[^m-p]]`: "", `\p{javaLowerCase}+`: "", `\p{Alpha}`: "", `(?<pkg>com)/\k<pkg>`: "",
		`(?x) com # a group (`: "", `(?d)a`: "", `\h\R`: "", `a{1,2000}`: "", `\Q(\E`: "", `(a)\1`: "",
	} {
		t.Run(expression, func(t *testing.T) {
			config := createDefaultConfig()
			config.Agent.Inclusions = []string{"^demo/", expression}
			err := confmap.Validate(config)
			if want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "agent.inclusions[1] is ")
			assert.ErrorContains(t, err, "no Java regular expression: "+want)
			config.Agent.Inclusions, config.Agent.Exclusions = nil, []string{expression}
			assert.ErrorContains(t, confmap.Validate(config), "agent.exclusions[0] is ")
		})
	}
}
