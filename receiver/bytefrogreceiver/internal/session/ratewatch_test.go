// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

func TestARunThatTracesTooMuchIsWarnedOfOnceAMinute(t *testing.T) {
	run := startedRun(t, consumertest.NewNop())
	core, said := observer.New(zapcore.WarnLevel)
	run.logger = zap.New(core)
	now := run.life.opened
	rate := rateWatch{limit: 1000, at: now}
	second := func(events uint64) {
		now = now.Add(time.Second)
		run.stream.Advance(0, events)
		rate.check(now, run.stream.Received(), run.logger)
	}
	second(999)
	assert.Zero(t, said.Len())
	for range 59 {
		second(5000)
	}
	assert.Equal(t, 1, said.Len())
	second(5000)
	second(5000)
	assert.Equal(t, 2, said.Len())
	assert.Equal(t, 5000.0, said.All()[0].ContextMap()["events_per_second"])
	rate.limit = 0
	now = now.Add(time.Hour)
	second(1 << 40)
	assert.Equal(t, 2, said.Len(), "0 is no limit")
}
