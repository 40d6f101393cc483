// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"net/url"
	"testing"

	"github.com/callbraid/callbraid/test/kit/browser"
)

// checkPages checks Prometheus' own pages, which Debian's package has, as a table and as a graph.
// Jaeger is built without its pages. Scripts of Debian's pages have their own errors, so the browser's
// are ignored.
func (n *numbers) checkPages(t *testing.T) {
	b := browser.Start(t)
	// A page asks once, when it is opened. This expression has a result even if a scrape failed just
	// then.
	const expression = "topk(10, sum by (code_function_name) (last_over_time(code_function_calls_total[1h])))"
	show := func(tab string) {
		query := url.Values{"g0.expr": {expression}, "g0.tab": {tab}, "g0.range_input": {"5m"}}
		b.Open(t, n.URL()+"/graph?"+query.Encode())
	}
	show("1")
	awaitScript(t, b, "the method that is called most", `[...document.querySelectorAll("tr")].some(row => row.innerText.includes("demo.Loop.hash") && row.innerText.includes("10944"))`)
	b.Screenshot(t, "prometheus-table")
	show("0")
	awaitScript(t, b, "a line for it", `document.querySelectorAll(".graph svg path").length > 0 && document.body.innerText.includes("demo.Loop.hash")`)
	b.Screenshot(t, "prometheus-graph")
}
