// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A receiver may reconnect with other metadata. The last metadata applies, also to spans that
// timers finish.
func TestSpansHaveTheMetadataOfTheClientThatSentTheLastBatch(t *testing.T) {
	b := newBed(t)
	for i, who := range []string{"first", "second", "third"} {
		words := []string{"enter f", "exit f", "enter main"}
		require.NoError(t, b.ConsumeTraces(tenant(who), traces(t, batch{stream: 1, first: uint64(3 * i), events: words})))
	}
	b.pass(time.Hour)
	b.tick()
	assert.Equal(t, []string{"first", "second", "third", "third"}, b.next.clients)
	assert.Len(t, b.next.accepted(), 6)
	b.finish()
}
