// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"net/http"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/test/kit"
)

var linkOut = regexp.MustCompile(`<a href="(http[^"]+)">`)

// config/control.yaml, as it is shipped except for addresses: the first page shows the collector, and each of its links leads to
// a page.
func TestTheFirstPageShowsTheWholeCollector(t *testing.T) {
	t.Parallel()
	control, agents := testkit.Address(t), testkit.Address(t)
	c := kit.Start(t, shipped(t, "control.yaml", map[string]string{
		"endpoint: localhost:13133": "${env:HEALTH}", "endpoint: localhost:8766": control, "endpoint: localhost:8765": agents,
		"endpoint: localhost:55679": testkit.Address(t), "endpoint: localhost:4040": testkit.Address(t),
	}), "CALLBRAID_DATA="+t.TempDir())
	page := fetch(t, "http://"+control)
	for _, want := range []string{
		`<th>traces</th><td class="name">bytefrog → memory_limiter → stack_pairing → flame_graph</td>`, "<th>faults</th><td>none</td>", "<th>losses</th><td>none</td>",
	} {
		assert.Contains(t, page, want)
	}
	assert.Regexp(t, `<th>memory budget</th><td>\d+ of \d+ MiB</td>`, page)
	links := linkOut.FindAllStringSubmatch(page, -1)
	require.Len(t, links, 5, "own metrics, flame graphs, and three of zpages")
	for _, link := range links {
		response, err := http.Get(link[1])
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, http.StatusOK, response.StatusCode, link[1])
	}
	c.Stop(t)
}
