// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/load"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/reference"
	"github.com/callbraid/callbraid/test/kit"
	"github.com/callbraid/callbraid/test/kit/browser"
)

// cutOff are the tables that are wider than their place.
const cutOff = `Array.from(document.querySelectorAll(".scroll, table")).filter(e => e.scrollWidth > e.clientWidth + 1 ||
	e.getBoundingClientRect().right > document.documentElement.clientWidth + 1).map(e => e.outerHTML.slice(0, 200)).join("\n")`

// sectionOf is the text of a section of the page, by its heading.
func sectionOf(t testing.TB, b *browser.Browser, heading string) string {
	t.Helper()
	return evaluate[string](t, b, fmt.Sprintf(
		`(Array.from(document.querySelectorAll("section")).find(e => e.querySelector("h2").innerText == %q) || {innerText: "no such section"}).innerText`, heading))
}

// The page of a running service begins with what people ask first.
func TestThePageOfAServiceAnswersTheFirstQuestions(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	pages, endpoint := testkit.Address(t), testkit.Address(t)
	c := kit.Start(t, pipeline(endpoint, "service_name: shop, agent: {heartbeat_interval: 100ms}", "", fmt.Sprintf("flame_graph: {endpoint: %q}", pages)))
	site := "http://" + pages
	b.Open(t, site)
	assert.Contains(t, textOf(t, b, "body"), "have arrived yet")
	markPage(t, b)
	program, err := load.New(load.Options{Rate: 1000, Exceptions: 0.05})
	require.NoError(t, err)
	agent := bytefrogagent.New(bytefrogagent.Options{Endpoint: endpoint, ConnectTimeout: testkit.Patience, StartTimeout: testkit.Patience}, program)
	results := make(chan bytefrogagent.Result, 1)
	go func() { results <- agent.Run(t.Context()) }()
	t.Cleanup(agent.Stop)
	awaitScript(t, b, "the service is listed without a reload", `Array.from(document.querySelectorAll("td a")).some(e => e.innerText == "shop")`)
	assertNotReloaded(t, b)
	follow(t, b, "shop")

	assert.Contains(t, sectionOf(t, b, "Most time"), load.FunctionName(0)[:10])
	assert.Regexp(t, `(?s)Began here.*\d\.\d%`, sectionOf(t, b, "Failures"))
	assert.Contains(t, sectionOf(t, b, "Changes"), "There is nothing to compare with yet")
	assert.Contains(t, sectionOf(t, b, "Slow now"), "Measuring the calls that end in the next 10s")
	measured := func() {
		awaitScript(t, b, "the calls of ten seconds are measured", `document.querySelectorAll("#now tbody tr").length > 3`)
		assert.Regexp(t, `[\d,]+ calls ended in the 10s until \d\d:\d\d:\d\d\.`, sectionOf(t, b, "Slow now"))
	}
	measured()
	first := sectionOf(t, b, "Slow now")
	b.Do(t, click("button", "Measure again"))
	awaitScript(t, b, "it measures again", `!document.querySelector("#now .wait").hidden`)
	testkit.Eventually(t, "the next seconds are shown", func() (bool, string) {
		now := sectionOf(t, b, "Slow now")
		return evaluate[bool](t, b, `document.querySelector("#now .wait").hidden`) && now != first, now
	})
	measured()

	b.Do(t, chromedp.SetValue(chromedp.CSS("select[name=seconds]"), "5"))
	b.Leave(t, click("button", "Collect from now on"))
	follow(t, b, "the service")
	assert.Regexp(t, `From shop to shop, window 1\s?, with equal totals`, sectionOf(t, b, "Changes"))
	follow(t, b, "Compare them")
	assert.Contains(t, textOf(t, b, "h1"), "shop and shop, window 1")

	for _, phone := range []bool{false, true} {
		if phone {
			b.Phone(t)
		}
		for _, path := range []string{"/", "/services/shop/", "/windows/1/", "/compare?before=services/shop/&after=windows/1/"} {
			b.Open(t, site+path)
			assert.Empty(t, evaluate[string](t, b, cutOff), "%s, on a phone: %t", path, phone)
			assert.Empty(t, evaluate[string](t, b, tooWide), "%s, on a phone: %t", path, phone)
		}
	}
	b.Open(t, site+"/services/shop/")
	measured()
	b.Screenshot(t, "service-phone-now")
	agent.Stop()
	await(t, results)
	assert.Empty(t, b.Errors())
	assertAllFrom(t, site, b.Requests())
	c.Stop(t)
}

// ordersOfShop are calls of three functions, one after the other. The second takes a time each.
func ordersOfShop(n int, slow time.Duration, seed uint16) ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "shop")
	spans := rs.ScopeSpans().AppendEmpty().Spans()
	at := time.Now()
	for i := range n {
		id := pcommon.SpanID{byte(seed >> 8), byte(seed), byte(i >> 8), byte(i), 1}
		trace := pcommon.TraceID{byte(seed >> 8), byte(seed), byte(i >> 8), byte(i), 1}
		add := func(name string, own byte, d time.Duration) {
			s := spans.AppendEmpty()
			s.SetTraceID(trace)
			s.SetSpanID(pcommon.SpanID{id[0], id[1], id[2], id[3], own})
			if own > 1 {
				s.SetParentSpanID(id)
			}
			s.SetName(name)
			s.SetStartTimestamp(pcommon.NewTimestampFromTime(at))
			s.SetEndTimestamp(pcommon.NewTimestampFromTime(at.Add(d)))
		}
		add("com.example.shop.Cart.list", 2, 3*time.Millisecond)
		add("com.example.shop.Stock.reserve", 3, slow)
		add("com.example.shop.Checkout.order", 1, slow+5*time.Millisecond)
	}
	return td
}

// A function becomes slow. The page of the service finds it, and no other.
func TestThePageOfAServiceFindsAFunctionThatBecameSlow(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	pages, otlp := testkit.Address(t), testkit.Address(t)
	c := kit.Start(t, fmt.Sprintf(`
receivers: {otlp: {protocols: {http: {endpoint: %q}}}}
exporters: {flame_graph: {endpoint: %q}}
service: {pipelines: {traces: {receivers: [otlp], exporters: [flame_graph]}}}
`, otlp, pages))
	require.NoError(t, kit.SendOTLP(otlp, ordersOfShop(500, 4*time.Millisecond, 1)))
	c.AwaitMetric(t, 1500, spansFolded)
	b.Open(t, "http://"+pages+"/services/shop/")
	awaitScript(t, b, "it measures", `!document.querySelector("#now .wait").hidden`)
	seed := uint16(2)
	testkit.Eventually(t, "slow calls arrive in the ten seconds", func() (bool, string) {
		require.NoError(t, kit.SendOTLP(otlp, ordersOfShop(20, 31*time.Millisecond, seed)))
		seed++
		return evaluate[bool](t, b, `document.querySelectorAll("#now tbody tr").length > 0`), ""
	})
	rows := evaluate[[]string](t, b, `Array.from(document.querySelectorAll("#now tbody tr"), e => e.innerText.replace(/\s+/g, " ").trim())`)
	require.Len(t, rows, 3)
	assert.Regexp(t, `^31ms [45](\.\d+)?ms \+\d{3}\.\d% [\d,]+ com\.example\.shop\.Stock\.reserve$`, rows[0])
	assert.Equal(t, 1, evaluate[int](t, b, `document.querySelectorAll("#now td.worse").length`))
	b.Picture(t, "slow-now")
	c.Stop(t)
}

// Without a script the same form shows the answer on a page of its own.
func TestThePageOfAServiceWorksWithoutAScript(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	pages, endpoint := testkit.Address(t), testkit.Address(t)
	c := kit.Start(t, pipeline(endpoint, "service_name: shop", "", fmt.Sprintf("flame_graph: {endpoint: %q}", pages)))
	agent{endpoint: endpoint, capture: "shop"}.complete(t)
	c.AwaitMetric(t, float64(len(reference.Spans(openCapture(t, "shop"), defaultRules).Spans)), spansFolded)
	b.WithoutScripts(t)
	b.Open(t, "http://"+pages+"/services/shop/")
	b.Leave(t, chromedp.Click(chromedp.CSS("#now button")))
	assert.Contains(t, textOf(t, b, "body"), "No call ended in the 10s until")
	follow(t, b, "the service")
	c.Stop(t)
}
