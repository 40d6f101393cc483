// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package position

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/lttng/ctf/merge"
)

func TestPositionsAreBoundedByTheirSize(t *testing.T) {
	p := NewStore(zap.NewNop(), nil)
	const traces = 100
	for i := range traces {
		r := &Trace{Streams: map[string]merge.Position{}}
		for j := range 1000 {
			r.Streams[fmt.Sprint(i, j, strings.Repeat("x", 4000))] = merge.Position{}
		}
		p.Set(t.Context(), fmt.Sprint(i), r)
		require.LessOrEqual(t, p.bytes, maxBytes)
	}
	assert.Less(t, len(p.traces), 20)
	assert.Equal(t, len(p.traces), len(p.order))
	assert.Len(t, p.Get(t.Context(), fmt.Sprint(traces-1)).Streams, 1000, "that of the last one is there")
	size := 0
	for _, r := range p.traces {
		size += r.size()
	}
	assert.Equal(t, size, p.bytes)
}
