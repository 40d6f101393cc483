// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/callbraid/callbraid/internal/logline"
)

func TestFailedClassesAreLoggedOnceForABurstWithTheFirstNames(t *testing.T) {
	core, logged := observer.New(zap.WarnLevel)
	logger, now := zap.New(core), time.Now()
	var f failedClasses
	f.log(logger, now, true)
	require.Zero(t, logged.Len(), "none failed")
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
	f.add("last")
	f.log(logger, now.Add(logline.Pause), true)
	assert.Equal(t, 1, logged.Len(), "at the end of the run")
}
