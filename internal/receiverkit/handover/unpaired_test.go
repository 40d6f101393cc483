// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/call/pairingmark"
)

const lineUnpaired = "No stack_pairing follows"

// pairing is a pipeline that has stack_pairing, behind something that may refuse first.
type pairing struct{ *pipeline }

func (p pairing) ConsumeTraces(ctx context.Context, traces ptrace.Traces) error {
	if err := p.pipeline.ConsumeTraces(ctx, traces); err != nil {
		return err
	}
	pairingmark.Set(ctx)
	return nil
}

func TestOneLineWarnsThatBatchesDoNotReachStackPairing(t *testing.T) {
	cases := map[string]struct {
		pairs, off bool
		want       int
	}{
		"no stack_pairing follows":                  {want: 1},
		"stack_pairing follows":                     {pairs: true},
		"the warning is off for the first of tiers": {off: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b, next := newBed(t), &pipeline{refusesEveryOther: true}
			var traces consumer.Traces = next
			if c.pairs {
				traces = pairing{next}
			}
			var unpaired func()
			if !c.off {
				unpaired = WarnUnpaired(b.settings.Logger)
			}
			// Two agents of one receiver.
			for range 2 {
				batches := NewBatches(BatchesSettings{
					Settings: b.settings, Next: traces, Accepted: func() {}, Dropped: func(int, string) {}, Retried: func() {},
					Unpaired: unpaired,
				})
				for i := range someBatches {
					batches.Send(numbered(i, 1), pcommon.NewResource())
				}
			}
			assert.Len(t, next.flat(), 2*someBatches)
			assert.Equal(t, c.want, b.lines(lineUnpaired))
		})
	}
}

func TestARefusedBatchCausesNoWarning(t *testing.T) {
	b, next := newBed(t), &pipeline{refuse: errRefused}
	batches := NewBatches(BatchesSettings{
		Settings: b.settings, Next: next, Accepted: func() {}, Dropped: func(int, string) {}, Retried: func() {},
		Unpaired: WarnUnpaired(b.settings.Logger),
	})
	assert.False(t, batches.Offer(numbered(0, 0), pcommon.NewResource()))
	assert.Zero(t, b.lines(lineUnpaired), "memory_limiter may have refused it")
}
