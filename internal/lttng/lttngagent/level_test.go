// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngagent_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

func TestLevelsHaveTheNamesAndNumbersOfTheirLibrary(t *testing.T) {
	const (
		lowest  = math.MinInt32
		highest = math.MaxInt32
	)
	for d, levels := range map[lttngagent.Domain]map[string]lttngagent.Level{
		lttngagent.JUL: {
			"OFF": highest, "SEVERE": 1000, "WARNING": 900, "INFO": 800, "CONFIG": 700,
			"FINE": 500, "FINER": 400, "FINEST": 300, "ALL": lowest,
		},
		lttngagent.Log4j: {
			"OFF": highest, "FATAL": 50000, "ERROR": 40000, "WARN": 30000, "INFO": 20000,
			"DEBUG": 10000, "TRACE": 5000, "ALL": lowest,
		},
		lttngagent.Python: {"CRITICAL": 50, "ERROR": 40, "WARNING": 30, "INFO": 20, "DEBUG": 10, "NOTSET": 0},
		lttngagent.Log4j2: {
			"OFF": 0, "FATAL": 100, "ERROR": 200, "WARN": 300, "INFO": 400, "DEBUG": 500, "TRACE": 600, "ALL": highest,
		},
	} {
		for name, want := range levels {
			got, err := d.ParseLevel(name)
			require.NoError(t, err, "%s %s", d, name)
			assert.Equal(t, want, got, "%s %s", d, name)
			assert.Equal(t, name, d.LevelText(want), "%s %d", d, want)
		}
	}
}

func TestLevelsAreAlsoNumbersAndNamesInAnyCase(t *testing.T) {
	for text, want := range map[string]lttngagent.Level{
		"finer": 400, "Severe": 1000, "850": 850, "-5": -5, "-2147483648": math.MinInt32,
	} {
		got, err := lttngagent.JUL.ParseLevel(text)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	assert.Equal(t, "850", lttngagent.JUL.LevelText(850))
	assert.Equal(t, "800", lttngagent.Domain(7).LevelText(800))
}

func TestInvalidLevelsAreErrors(t *testing.T) {
	for text, d := range map[string]lttngagent.Domain{
		"": lttngagent.JUL, "DEBUG": lttngagent.JUL, "FINE": lttngagent.Python, "2147483648": lttngagent.Log4j, "INFO": 7,
	} {
		_, err := d.ParseLevel(text)
		assert.Error(t, err, "%s %q", d, text)
	}
	_, err := lttngagent.Python.ParseLevel("FINE")
	assert.EqualError(t, err, `expected a level of python (CRITICAL, ERROR, WARNING, INFO, DEBUG, NOTSET) or a number, got "FINE"`)
}

func TestUnknownTypesOfLevelsAreErrors(t *testing.T) {
	for number, name := range []string{"all", "range", "single"} {
		parsed, err := lttngagent.ParseLevelType(name)
		require.NoError(t, err)
		assert.Equal(t, lttngagent.LevelType(number), parsed)
		assert.Equal(t, name, parsed.String())
		levels, err := lttngagent.NewLevels(parsed, 400)
		require.NoError(t, err)
		assert.Equal(t, parsed, levels.Type())
		assert.Equal(t, name != "all", levels.Level() == 400)
	}
	_, err := lttngagent.ParseLevelType("above")
	assert.EqualError(t, err, `expected all, range or single, got "above"`)
	_, err = lttngagent.NewLevels(3, 400)
	assert.EqualError(t, err, "expected a type of levels from 0 to 2, got 3")
	assert.Equal(t, "level type 3", lttngagent.LevelType(3).String())
}
