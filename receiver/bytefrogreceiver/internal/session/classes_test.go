// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/componentkit/logline"
)

func TestFailedClassesAreLoggedOnceForABurstWithTheFirstNames(t *testing.T) {
	core, logged := observer.New(zap.WarnLevel)
	logger, now := zap.New(core), time.Now()
	var f failedClasses
	f.log(logger, now, true)
	require.Zero(t, logged.Len(), "none failed")
	none := pcommon.NewMap()
	f.putTo(none)
	assert.Zero(t, none.Len())
	for i := range 66 {
		f.add(fmt.Sprint("com/example/Main", i))
	}
	f.log(logger, now, false)
	f.add("late/" + strings.Repeat("é", classNameBytes))
	f.log(logger, now.Add(logline.Pause/2), false)
	lines := logged.TakeAll()
	require.Len(t, lines, 1)
	assert.Equal(t, map[string]any{
		"classes": int64(66), "classes_of_the_run": int64(66),
		"first": []any{"com.example.Main0", "com.example.Main1", "com.example.Main2", "com.example.Main3", "com.example.Main4"},
	}, lines[0].ContextMap())
	f.log(logger, now.Add(logline.Pause), false)
	lines = logged.TakeAll()
	require.Len(t, lines, 1, "the pause is over")
	assert.EqualValues(t, 1, lines[0].ContextMap()["classes"])
	assert.EqualValues(t, 67, lines[0].ContextMap()["classes_of_the_run"])
	first := lines[0].ContextMap()["first"].([]any)[0].(string)
	assert.Equal(t, "late."+strings.Repeat("é", (classNameBytes-5)/2), first)
	said := pcommon.NewMap()
	f.putTo(said)
	assert.Equal(t, map[string]any{
		attributeMissingClasses: int64(67),
		attributeMissingFirst:   "com.example.Main0, com.example.Main1, com.example.Main2, com.example.Main3, com.example.Main4",
	}, said.AsRaw())
	f.add("last")
	f.log(logger, now.Add(logline.Pause), true)
	assert.Equal(t, 1, logged.Len(), "at the end of the run")
}

// A user who wrote the filters wrong sees no span, and learns why from the log.
func TestARunThatTracesNoClassIsLoggedWithItsFilters(t *testing.T) {
	for _, c := range []struct {
		name    string
		reports []bytefrog.MessageType
		lines   int
	}{
		{"no class was loaded", nil, 0},
		{"all classes are ignored", []bytefrog.MessageType{bytefrog.TypeClassIgnored, bytefrog.TypeClassIgnored}, 1},
		{"one of them is traced", []bytefrog.MessageType{bytefrog.TypeClassIgnored, bytefrog.TypeClassTransformed}, 0},
		{"one of them failed, which has a line of its own", []bytefrog.MessageType{bytefrog.TypeClassIgnored, bytefrog.TypeClassTransformFailed}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			core, logged := observer.New(zap.WarnLevel)
			var m matching
			for _, result := range c.reports {
				m.add(result)
			}
			filters := &bytefrog.AgentConfiguration{Inclusions: []string{`^demo\.`}, Exclusions: []string{""}}
			m.log(zap.New(core), filters)
			m.log(zap.New(core), filters)
			require.Equal(t, c.lines, logged.Len())
			for _, line := range logged.All() {
				assert.Equal(t, map[string]any{"classes": int64(2), "inclusions": []any{`^demo\.`}, "exclusions": []any{""}}, line.ContextMap())
			}
		})
	}
}
