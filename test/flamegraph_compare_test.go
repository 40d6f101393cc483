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

	"github.com/callbraid/callbraid/test/kit"
	"github.com/callbraid/callbraid/test/kit/browser"
)

// versionOfShop are orders of a version of the shop. Each has three calls, and 5 ms beside the slow one.
func versionOfShop(version string, orders int, slow time.Duration, seed uint16) ptrace.Traces {
	td := ordersOfShop(orders, slow, seed)
	td.ResourceSpans().At(0).Resource().Attributes().PutStr("service.version", version)
	return td
}

// alternating is a trace in which two functions are called by turns, twice each.
func alternating() ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "clock")
	spans := rs.ScopeSpans().AppendEmpty().Spans()
	at := time.Now()
	add := func(name string, begin, end time.Duration) {
		s := spans.AppendEmpty()
		s.SetTraceID(pcommon.TraceID{99})
		if s.SetSpanID(pcommon.SpanID{byte(spans.Len())}); spans.Len() > 1 {
			s.SetParentSpanID(pcommon.SpanID{1})
		}
		s.SetName(name)
		s.SetStartTimestamp(pcommon.NewTimestampFromTime(at.Add(begin)))
		s.SetEndTimestamp(pcommon.NewTimestampFromTime(at.Add(end)))
	}
	const step = 2 * time.Millisecond
	add("Clock.day", 0, 5*step)
	for i := range time.Duration(2) {
		add("Tick.go", 2*i*step, (2*i+1)*step)
		add("Tock.go", (2*i+1)*step, (2*i+2)*step)
	}
	return td
}

// smallSpans is the number of spans that sendSmallTrees sends.
const smallSpans = 3*(10+20) + 5

// sendSmallTrees sends two versions of a shop, and a trace. The second version has twice as many orders, and its slow function takes
// six times as long.
func sendSmallTrees(t *testing.T, otlp string) {
	t.Helper()
	for _, td := range []ptrace.Traces{versionOfShop("1.2", 10, 4*time.Millisecond, 101), versionOfShop("1.3", 20, 24*time.Millisecond, 102), alternating()} {
		require.NoError(t, kit.SendOTLP(otlp, td))
	}
}

// compare fills in the form of the page that compares.
func compare(t *testing.T, b *browser.Browser, site, before, after, by, scale string) {
	t.Helper()
	b.Open(t, site+"/compare")
	for name, value := range map[string]string{"before": before, "after": after, "by": by, "scale": scale} {
		b.Do(t, chromedp.SetValue(chromedp.CSS(fmt.Sprintf("select[name=%s]", name)), value))
	}
	b.Leave(t, click("button", "Compare"))
}

// rowsOf are the texts of the rows of a table.
func rowsOf(t *testing.T, b *browser.Browser, table string) []string {
	t.Helper()
	return evaluate[[]string](t, b, fmt.Sprintf(`Array.from(document.querySelectorAll(%q), e => e.innerText.replace(/\s+/g, ' ').trim())`, table+" tbody tr"))
}

// widthsOfPictures are the widths of the widest frames of the difference, and of the trees before and after.
func widthsOfPictures(t *testing.T, b *browser.Browser) []float64 {
	t.Helper()
	widths := evaluate[[]float64](t, b, `Array.from(document.querySelectorAll('svg.flames'),
		svg => Math.max(...Array.from(svg.querySelectorAll('rect'), rect => rect.getBoundingClientRect().width)))`)
	require.Len(t, widths, 3)
	return widths
}

// redness is by how much a frame of the difference is more red than blue.
func redness(t *testing.T, b *browser.Browser, function string) float64 {
	t.Helper()
	return evaluate[float64](t, b, fmt.Sprintf(`{
		const frames = Array.from(document.querySelector('svg.flames').querySelectorAll('svg'));
		const frame = frames.find(e => e.querySelector('title').textContent.startsWith(%q));
		const [red, , blue] = getComputedStyle(frame.querySelector('rect')).fill.match(/[0-9.]+/g).map(Number);
		red - blue;
	}`, "com.example.shop."+function))
}

const slowFunction = "Stock.reserve"

// comparesVersions compares two versions of a service, by each measure and scale, and in the other order.
func comparesVersions(t *testing.T, b *browser.Browser, site string) {
	const before, after = "services/shop@1.2/", "services/shop@1.3/"
	compare(t, b, site, before, after, "time", "real")
	assert.Equal(t, "shop@1.2 and shop@1.3", textOf(t, b, "h1"))
	assert.Contains(t, textOf(t, b, "body"), "Functions that differ most in time\n")
	totals := rowsOf(t, b, "table.totals")
	require.Len(t, totals, 3)
	assert.Equal(t, "calls 30 60 +100.0%", totals[0])
	assert.Equal(t, "time 90ms 580ms +544.4%", totals[1])
	const real = "40ms 480ms ×12 10 20 +100.0% 4ms 24ms +500.0% com.example.shop." + slowFunction
	rows := rowsOf(t, b, "table.cards")
	require.Len(t, rows, 3)
	assert.Equal(t, real, rows[0])
	widths := widthsOfPictures(t, b)
	assert.InDelta(t, 90.0/580, widths[1]/widths[2], 0.02, "both trees have one scale")
	more := redness(t, b, slowFunction)
	assert.Greater(t, more, 20.0, "it takes longer")
	assert.Empty(t, evaluate[string](t, b, `Array.from(document.querySelectorAll('.note'), e => e.innerText).join('\n')`), "nothing is missing")
	assert.Empty(t, evaluate[string](t, b, tooWide))
	b.Screenshot(t, "compare-versions")

	follow(t, b, "Swap")
	assert.Equal(t, "shop@1.3 and shop@1.2", textOf(t, b, "h1"))
	assert.Contains(t, rowsOf(t, b, "table.cards")[0], "480ms 40ms -91.7% 20 10 -50.0% 24ms 4ms -83.3%")
	assert.Less(t, redness(t, b, slowFunction), -20.0, "it takes less")
	assert.Equal(t, []string{after, before}, evaluate[[]string](t, b, `['before', 'after'].map(name => document.querySelector('select[name=' + name + ']').value)`))
	follow(t, b, "Swap")
	assert.Equal(t, real, rowsOf(t, b, "table.cards")[0])

	// The tree before is multiplied by 580/90.
	compare(t, b, site, before, after, "time", "equal")
	assert.Equal(t, "equal", evaluate[string](t, b, `document.querySelector('select[name=scale]').value`))
	assert.Equal(t, "time 580ms 580ms =", rowsOf(t, b, "table.totals")[1])
	assert.Regexp(t, `^257\.\d+ms 480ms \+86\.2% 64 20 -69\.0% 4ms 24ms \+500\.0% `, rowsOf(t, b, "table.cards")[0])
	widths = widthsOfPictures(t, b)
	assert.InDelta(t, 1, widths[1]/widths[2], 0.001)
	follow(t, b, "Swap")
	assert.Equal(t, "time 90ms 90ms =", rowsOf(t, b, "table.totals")[1], "the other order has the scale, too")

	compare(t, b, site, before, after, "call", "real")
	text := textOf(t, b, "body")
	assert.Contains(t, text, "Functions that differ most in time of a call\n")
	assert.Contains(t, text, "The colour compares time of a call")
	rows = rowsOf(t, b, "table.cards")
	require.Len(t, rows, 2, "a call of Cart.list takes as long as before")
	assert.Contains(t, rows[0], "9ms 29ms +222.2% com.example.shop.Checkout.order")
	assert.Contains(t, rows[1], slowFunction)
	assert.InDelta(t, 0, redness(t, b, "Cart.list"), 20)
	assert.Greater(t, redness(t, b, slowFunction), 20.0)
}

// comparesServices compares two services. The second one is not complete.
func comparesServices(t *testing.T, b *browser.Browser, site string) {
	compare(t, b, site, "services/shop@1.2/", "services/com.example.Cart.add/", "calls", "real")
	notes := evaluate[[]string](t, b, `Array.from(document.querySelectorAll('.note'), e => e.innerText)`)
	require.Len(t, notes, 2)
	assert.Regexp(t, `^After: .*could not instrument some classes: 2 \(com\.example\.<b>Order</b>, …\)`, notes[0])
	assert.Regexp(t, `^After: .*Calls in \(parent not seen\): 1;`, notes[1])
	rows := rowsOf(t, b, "table.cards")
	assert.Contains(t, rows, "40ms 0s gone 10 0 gone 4ms – com.example.shop.Stock.reserve (only before)")
	assert.Regexp(t, `0 2 new – \S+ com\.example\.Cart\.add \(only after\)`, rows)
	assert.Positive(t, evaluate[int](t, b, `Array.from(document.querySelectorAll('svg.flames title')).filter(e => e.textContent.startsWith('(parent not seen)')).length`))
	b.Screenshot(t, "compare-services")
	follow(t, b, "Swap")
	for _, note := range evaluate[[]string](t, b, `Array.from(document.querySelectorAll('.note'), e => e.innerText)`) {
		assert.Regexp(t, `^Before: `, note)
	}
}

// callsOfServices are the calls in the list of all services.
func callsOfServices(t *testing.T, b *browser.Browser) map[string]string {
	t.Helper()
	return evaluate[map[string]string](t, b,
		`Object.fromEntries(Array.from(document.querySelectorAll('tbody tr'), e => [e.querySelector('.name').innerText, e.querySelector('[data-label=Calls]').innerText]))`)
}

// resetsAll resets all services, which then begin again.
func resetsAll(t *testing.T, b *browser.Browser, c *kit.Collector, site, otlp string) {
	b.Open(t, site)
	assert.Equal(t, map[string]string{"shop@1.2": "30", "shop@1.3": "60", "clock": "5", "com.example.Cart.add": "3"}, callsOfServices(t, b))
	b.Leave(t, click("button", "Reset all services"))
	assert.Equal(t, site+"/", evaluate[string](t, b, `document.URL`))
	assert.Equal(t, map[string]string{"shop@1.2": "0", "shop@1.3": "0", "clock": "0", "com.example.Cart.add": "0"}, callsOfServices(t, b))
	before := c.Metric(t, spansFolded)
	require.NoError(t, kit.SendOTLP(otlp, versionOfShop("1.3", 2, time.Millisecond, 103)))
	c.AwaitMetric(t, before+6, spansFolded)
	b.Open(t, site)
	assert.Equal(t, map[string]string{"shop@1.2": "0", "shop@1.3": "6", "clock": "0", "com.example.Cart.add": "0"}, callsOfServices(t, b))
}
