// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/test/kit/browser"
)

// In a browser a user sees an Arthas server, starts a command with patterns, and ends it. The flame graph has the call trees of
// another command.
func TestAnArthasServerInABrowser(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	server, pages := newArthasServer(t), testkit.Address(t)
	played := server.play(t, "--rate", "100")
	c, client := startControlled(t, "", fmt.Sprintf(`
receivers: {arthas: {service_name: shop, servers: [{endpoint: %q}], poll_interval: 50ms, idle_poll_interval: 50ms, collection_interval: 1s}}
exporters: {flame_graph: {endpoint: %q}, file/metrics: {path: "${env:DIR}/metrics.json"}}
service:
  extensions: [health_check, pprof, agent_control]
  pipelines: {traces: {receivers: [arthas], exporters: [flame_graph]}, metrics: {receivers: [arthas], exporters: [file/metrics]}}
`, server.url(), pages))
	id := awaitAgents(t, client, 1)[0].ID
	testkit.Eventually(t, "it is connected", func() (bool, string) {
		shown, err := client.Agent(t.Context(), id)
		require.NoError(t, err)
		return shown.State == "connected", shown.State
	})
	// send fills the form of a command, and returns the text of the next page.
	send := func(command string, arguments ...string) string {
		form := fmt.Sprintf("form.command:has(button[value=%s]) ", command)
		b.Open(t, client.Endpoint+"/agents/"+id)
		for _, argument := range arguments {
			name, value, _ := strings.Cut(argument, "=")
			b.Do(t, chromedp.SendKeys(chromedp.CSS(form+fmt.Sprintf("input[name='argument.%s']", name)), value))
		}
		b.Leave(t, chromedp.Click(chromedp.CSS(form+"button")))
		return textOf(t, b, "body")
	}

	b.Open(t, client.Endpoint)
	for _, want := range []string{id, "arthas", "shop", server.endpoint, "connected"} {
		assert.Contains(t, textOf(t, b, "body"), want)
	}
	follow(t, b, "shop")
	assert.Equal(t, []string{"monitor", "trace", "list", "end", "reset"}, evaluate[[]string](t, b, `Array.from(document.querySelectorAll("button[name=command]")).map(e => e.value)`))
	assert.Equal(t, []string{"reset"}, evaluate[[]string](t, b, `Array.from(document.querySelectorAll("button[disabled]")).map(e => e.value)`))
	assert.Contains(t, send("monitor", "class=com.example.shop.Service2", "method=*", "cycle=1"), "matching methods")
	b.Screenshot(t, "arthas-monitor")
	assert.Contains(t, send("trace", "class=com.example.shop.Service1", "method=operation1", "limit=5"), "matching methods")
	assert.Contains(t, send("list"), "monitor com.example.shop.Service2 *, cycles of 1s: running")
	assert.Contains(t, send("monitor", "class=com.example.* > /tmp/x", "method=*"), "' ' at byte 13", "a pattern cannot become another command")
	testkit.Eventually(t, "calls to be counted", func() (bool, string) {
		got := countsOf(t, c)
		return got.sum() > 0, fmt.Sprint(got)
	})
	send("end", "task=1")
	assert.NotContains(t, send("list"), "Service2")
	assertAllFrom(t, client.Endpoint, b.Requests())

	const trees = 5
	c.AwaitMetric(t, trees, spansFolded)
	b.Open(t, "http://"+pages)
	follow(t, b, "shop")
	assert.Contains(t, textOf(t, b, "table"), "Service1.operation1")
	follow(t, b, "Flame graph")
	awaitPicture(t, b)
	assert.Contains(t, strings.Join(evaluate[[]string](t, b, frameLabels), "\n"), "Service1.operation1")
	b.Screenshot(t, "arthas-flamegraph")
	assert.Empty(t, b.Errors())
	c.Stop(t)
	played.stop()
	lives := played.lives()
	require.Len(t, lives, 1)
	assert.Zero(t, lives[0].Enhanced, "it is restored")
	assert.Zero(t, lives[0].Sessions)
}
