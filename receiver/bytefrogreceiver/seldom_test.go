// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

func TestAPipelineThatRefusesAndAcceptsByTurnsIsSaidSeldom(t *testing.T) {
	core, said := observer.New(zapcore.InfoLevel)
	now := time.Now()
	b := unstartedBed(t)
	h := &handover{observer: b.receiver.env.observer, telemetry: b.receiver.env.telemetry, logger: zap.New(core), now: func() time.Time { return now }}
	p := parcel{observed: t.Context()}
	refusals := func() []observer.LoggedEntry { return said.FilterMessageSnippet("refuses call events").All() }
	accepts := func() int { return said.FilterMessageSnippet("accepts call events again").Len() }

	for range 100 {
		h.refusedNow(errRefused)
		h.refusedNow(errRefused)
		h.delivered(p, nil)
		now = now.Add(10 * time.Millisecond)
	}
	assert.Len(t, refusals(), 1)
	assert.Equal(t, 1, accepts())

	// One that goes on is said when its time has come, and once.
	h.refusedNow(errRefused)
	now = now.Add(seldomPause)
	h.refusedNow(errRefused)
	now = now.Add(seldomPause)
	h.refusedNow(errRefused)
	assert.Len(t, refusals(), 2)
	assert.EqualValues(t, 2*100-1+2, refusals()[1].ContextMap()["refusals_since_last_line"])
	h.delivered(p, nil)
	assert.Equal(t, 2, accepts())
}
