// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/callbraid/callbraid/internal/componentkit/logline"
)

func TestCallsThatCannotBePackedAreLoggedRarely(t *testing.T) {
	core, logged := observer.New(zapcore.DebugLevel)
	now := time.Unix(1, 0)
	s := &shared{Settings: &Settings{Now: func() time.Time { return now }}, logger: zap.New(core)}
	for range 9 {
		s.logCannotPack(errors.New("no room"))
	}
	now = now.Add(logline.Pause)
	s.logCannotPack(errors.New("no room"))
	lines := logged.FilterMessage("Call events of a process cannot be packed").All()
	require.Len(t, lines, 2)
	assert.EqualValues(t, 1, lines[0].ContextMap()["times_since_last_line"])
	assert.EqualValues(t, 9, lines[1].ContextMap()["times_since_last_line"])
}
