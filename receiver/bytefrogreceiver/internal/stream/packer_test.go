// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

// numbersFrom are 100 events with numbers from first on.
func numbersFrom(first uint32) []bytefrog.Event {
	events := make([]bytefrog.Event, 100)
	for i := range events {
		events[i].Sequence = first + uint32(i)
	}
	return events
}

// The numbers of a batch decide which breaks it carries.
func TestABatchEndsBeforeAnImpossibleSequenceNumber(t *testing.T) {
	p := newPacked(t)
	_, err := p.stream.names.mapMethod(1, "demo/Shop.process;0;()V")
	require.NoError(t, err)
	_, _, err = p.stream.names.mapThread(0, 0, "main")
	require.NoError(t, err)
	events := append(numbersFrom(0), bytefrog.Event{Sequence: 1<<31 + 100})
	for i := range events {
		events[i].Type, events[i].Method = bytefrog.TypeMethodEntry, 1
	}
	bad, err := p.Pack(events, time.Now())
	require.Error(t, err)
	assert.Equal(t, 100, bad)
	assert.Equal(t, 100, p.packer.Len())
	assert.EqualValues(t, 0, p.first)
	assert.EqualValues(t, 99, p.last)
}
