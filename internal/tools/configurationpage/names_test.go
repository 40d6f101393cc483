// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
)

// Every component reports the right name of a misspelt setting, also of one below another, and accepts all names that it has.
func TestEveryComponentReportsTheRightNameOfASetting(t *testing.T) {
	for _, c := range components {
		t.Run(c.directory, func(t *testing.T) {
			first := direct("", reflect.ValueOf(c.factory.CreateDefaultConfig()).Elem(), false)[0].name
			err := confmap.NewFromStringMap(map[string]any{first + "x": nil}).Unmarshal(c.factory.CreateDefaultConfig())
			assert.ErrorContains(t, err, first+"x is not a setting: did you mean "+first+"?")

			all := confmap.New()
			require.NoError(t, all.Marshal(c.factory.CreateDefaultConfig()))
			assert.NoError(t, all.Unmarshal(c.factory.CreateDefaultConfig()))
		})
	}
}
