// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/perfettofile"
	"github.com/callbraid/callbraid/test/kit"
	"github.com/callbraid/callbraid/test/kit/browser"
)

// The pages of config/perfetto.yaml offer the trace files, also those from before a restart.
func TestPagesOfferTraceFiles(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	data, downloaded := t.TempDir(), t.TempDir()
	start := func() (c *kit.Collector, agents, site string) {
		agents, pages := testkit.Address(t), testkit.Address(t)
		return kit.Start(t, shipped(t, "perfetto.yaml", map[string]string{
			"endpoint: localhost:13133": "${env:HEALTH}", "endpoint: localhost:8765": agents, "endpoint: localhost:4040": pages,
			"endpoint: localhost:4317": testkit.Address(t), "endpoint: localhost:8889": testkit.Address(t),
		}), "CALLBRAID_DATA="+data), agents, "http://" + pages
	}
	c, agents, site := start()
	agentsim(t, "replay", "--endpoint", agents, capturePath("shop"))
	c.AwaitMetric(t, 1, runsEnded)
	slices := 0
	testkit.Eventually(t, "all spans are written", func() (bool, string) {
		slices = int(c.Metric(t, "otelcol_exporter_perfetto_slices"))
		return slices > 0 && slices == int(c.Metric(t, spansFolded)), "some are not"
	})

	b.DownloadTo(t, downloaded)
	b.Open(t, site)
	assert.Contains(t, textOf(t, b, "body"), "Trace files")
	b.Screenshot(t, "trace-files")
	b.Leave(t, chromedp.Click(chromedp.CSS("a[href^='services/']")))
	b.Do(t, click("a", "latest trace file"))
	assert.Equal(t, slices, slicesOfDownload(t, downloaded, "spans.perfetto-trace"))
	follow(t, b, "all trace files")
	b.Phone(t)
	b.Open(t, site)
	assert.Empty(t, evaluate[string](t, b, tooWide), "nothing is wider than a phone")
	b.Screenshot(t, "trace-files-phone")
	b.Desktop(t)
	assert.Empty(t, b.Errors())
	c.Stop(t)

	_, _, site = start()
	b.Open(t, site)
	assert.Contains(t, textOf(t, b, "body"), "have arrived yet")
	earlier := evaluate[string](t, b, `document.querySelector("a[href*='files/']").innerText`)
	b.Do(t, click("a", earlier))
	assert.Equal(t, slices, slicesOfDownload(t, downloaded, earlier))
}

// slicesOfDownload waits for a downloaded trace file, and counts its slices.
func slicesOfDownload(t *testing.T, directory, name string) (n int) {
	t.Helper()
	read, err := perfettofile.Open(browser.Downloaded(t, directory, name))
	require.NoError(t, err)
	for _, s := range read.Slices {
		if !s.Instant {
			n++
		}
	}
	return n
}
