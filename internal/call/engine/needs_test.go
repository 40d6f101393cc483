// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

const lineUnmet = "too small for a receiver's setting"

// with returns a batch of a receiver with needs.
func with(t testing.TB, needs callevent.Needs) ptrace.Traces {
	td := traces(t, call(1, "f", 0))
	needs.To(td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0))
	return td
}

func TestASettingThatIsTooSmallForAReceiverIsLoggedOnceWithBothValues(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Reorder.MaxWait, c.Reorder.MaxEvents = time.Second, 100_000 })
	needs := callevent.Needs{
		{Of: "reorder.max_wait", Because: "name_wait: 1s", MoreThan: int64(time.Second)},
		{Of: "reorder.max_wait", Because: "retry.max_interval: 400ms", MoreThan: int64(800 * time.Millisecond)},
		{Of: "reorder.max_events", Because: "limits.max_connection_lead: 100000", MoreThan: 100_000},
		{Of: "idle_timeout", Because: "keepalive_interval: 10s", MoreThan: int64(10 * time.Second)},
		{Of: "some.other", Because: "later: 1", MoreThan: 1},
	}
	for range 3 {
		require.NoError(t, b.ConsumeTraces(context.Background(), with(t, needs)))
	}
	var logged []map[string]any
	for _, line := range b.logs.FilterMessageSnippet(lineUnmet).All() {
		logged = append(logged, line.ContextMap())
	}
	assert.ElementsMatch(t, []map[string]any{
		{"setting": "reorder.max_wait", "value": time.Second, "expected_more_than": time.Second, "receiver": "name_wait: 1s"},
		{"setting": "reorder.max_events", "value": int64(100_000), "expected_more_than": int64(100_000), "receiver": "limits.max_connection_lead: 100000"},
	}, logged)
	assert.Equal(t, []string{"s1/f 0"}, b.next.accepted(), "they change nothing of the batch")
	b.finish()
}

func TestNeedsOfStrangersAreBounded(t *testing.T) {
	b := newBed(t)
	var needs callevent.Needs
	for i := range 10 * maxUnmet {
		needs = append(needs, callevent.Need{Of: "idle_timeout", Because: fmt.Sprint(i), MoreThan: int64(time.Hour)})
	}
	require.NoError(t, b.ConsumeTraces(context.Background(), with(t, needs)))
	assert.Equal(t, maxUnmet, b.logs.FilterMessageSnippet(lineUnmet).Len())
	td := traces(t, call(1, "g", 2))
	attributes := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes()
	attributes.PutStr(callevent.AttributeNeeds+"reorder.max_wait", "much")
	attributes.PutEmptyMap(callevent.AttributeNeeds+"idle_timeout").PutStr("a", "b")
	require.NoError(t, b.ConsumeTraces(context.Background(), td))
	assert.Equal(t, []string{"s1/f 0", "s1/g 2"}, b.next.accepted())
	b.finish()
}

func TestNeedsOfStrangersAreForgottenAfterAnHour(t *testing.T) {
	var u unmet
	for i := range maxUnmet {
		assert.True(t, u.remember(callevent.Need{MoreThan: int64(i)}, time.Minute))
	}
	honest := callevent.Need{Because: "name_wait: 1s"}
	assert.False(t, u.remember(honest, unmetTime))
	assert.True(t, u.remember(honest, time.Minute+unmetTime))
	assert.False(t, u.remember(honest, time.Minute+unmetTime))
}
