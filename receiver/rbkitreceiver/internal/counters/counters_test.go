// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package counters

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/receiverkit/receivertestbed"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/metadata"
)

func TestEachCounterGrowsByTheNewTotals(t *testing.T) {
	b := receivertestbed.New(t, metadata.Type)
	config := receiverkit.DefaultConfig()
	kit, err := receiverkit.New(b.Settings, &config, receiverkit.Names{Format: "rbkit", Scope: metadata.ScopeName})
	require.NoError(t, err)
	c, err := New(kit)
	require.NoError(t, err)
	defer c.Shutdown()
	totals := Totals{
		Messages: 1, Bytes: 2, Events: 3, Lost: 4, Unknown: 5, Folded: 6, Forgotten: 7, NoStart: 8, NoEnd: 9, StepsBack: 10,
		Complete: 11, Incomplete: 12, Uncounted: 13, Unchecked: 14, SamplesDropped: 15, StacksDropped: 16,
	}
	want := map[string]int64{
		"messages": 1, "bytes": 2, "events": 3, "messages_lost": 4, "events_unknown": 5, "folded": 6, "objects_forgotten": 7,
		"gc_unpaired{missing=start}": 8, "gc_unpaired{missing=end}": 9, "steps_back": 10,
		"dumps{objects=complete}": 11, "dumps{objects=incomplete}": 12, "dumps{objects=not_announced}": 13, "dumps_unchecked": 14,
		"samples_dropped{reason=limit}": 15, "stacks_dropped": 16,
	}
	c.CountSince(&Totals{}, &totals)
	assert.Equal(t, want, b.Points())
	c.CountSince(&totals, &totals)
	assert.Equal(t, want, b.Points(), "totals without change")
	more := totals
	more.Events++
	want["events"]++
	c.CountSince(&totals, &more)
	assert.Equal(t, want, b.Points())
}
