// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/lttnglive"
)

func TestEveryEventOfACaptureBecomesALogRecord(t *testing.T) {
	for name, events := range map[string]int{
		"jul1": 282, "julctx": 18, "cygok": 245, "cyg1": 7886, "tp1": 152, "meta1": 656,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRelay(t, captured(t, name), lttnglive.RelayOptions{})
			b := newBed(t, reading(r.address()))
			b.awaitRecords(events)
			b.shutdown()
			assert.Len(t, b.records(), events)
			assert.EqualValues(t, events, b.metric("receiver_lttng_live_events"))
		})
	}
}
