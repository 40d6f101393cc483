// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/componentkit/figures"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/test/kit"
	"github.com/callbraid/callbraid/test/kit/browser"
)

// The frames of a flame graph, their labels, and the details below the picture.
const (
	frameElements = `Array.from(document.querySelectorAll('#chart g.frame'))`
	frameLabels   = frameElements + `.map(e => e.querySelector('.d3-flame-graph-label').textContent)`
	frameDetails  = `document.getElementById('details').innerText`
	flameStatus   = `document.getElementById('status').innerText`
	flameLegend   = `document.getElementById('legend').innerText`
)

// awaitPicture waits until a flame graph is drawn, with its labels.
func awaitPicture(t testing.TB, b *browser.Browser) {
	t.Helper()
	testkit.Eventually(t, "a flame graph is drawn", func() (bool, string) {
		if evaluate[bool](t, b, `document.body.dataset.shown > 0 && `+frameLabels+`.some(text => text != '')`) {
			return true, ""
		}
		return false, evaluate[string](t, b, `document.body.innerText.slice(0, 1000)`) + strings.Join(b.Errors(), "\n")
	})
}

// redraw does something, and waits until the picture is drawn again.
func redraw(t testing.TB, b *browser.Browser, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	before := evaluate[int](t, b, `Number(document.body.dataset.shown)`)
	b.Do(t, actions...)
	awaitScript(t, b, "the picture is drawn again", fmt.Sprintf(`Number(document.body.dataset.shown) > %d`, before))
	awaitPicture(t, b)
}

// frame gives the widest frame of a function an ID, and returns its selector.
func frame(t testing.TB, b *browser.Browser, function string) string {
	t.Helper()
	b.Do(t, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`{
		document.getElementById('chosen')?.removeAttribute('id');
		const all = %s.filter(g => g.__data__.data.n.includes(%q));
		all.sort((a, b) => (b.__data__.x1 - b.__data__.x0) - (a.__data__.x1 - a.__data__.x0));
		all[0].id = 'chosen';
	}`, frameElements, function)))
	return "#chosen"
}

// widthOf returns the width of that frame in pixels.
func widthOf(t testing.TB, b *browser.Browser, function string) float64 {
	t.Helper()
	return evaluate[float64](t, b, fmt.Sprintf(`document.querySelector('%s rect').getBoundingClientRect().width`, frame(t, b, function)))
}

// looksAtTheFlameGraph does everything that a person can do on the page of a flame graph of a Maven build.
func looksAtTheFlameGraph(t *testing.T, b *browser.Browser) {
	awaitPicture(t, b)
	address := evaluate[string](t, b, `document.URL`)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *browser.Browser)
	}{
		{"has frames", hasFrames},
		{"has colours of packages and a legend", hasColours},
		{"shows errors", showsErrors},
		{"search", findsFrames},
		{"zoom", zooms},
		{"keys", reachesFramesByKeys},
		{"a finger on a phone", tapsOnAPhone},
		{"dark colours", isDark},
		{"hide a function", hidesAFunction},
	} {
		t.Run(test.name, func(t *testing.T) {
			b.Open(t, address)
			awaitPicture(t, b)
			test.run(t, b)
		})
	}
	b.Open(t, address)
	awaitPicture(t, b)
}

func hasFrames(t *testing.T, b *browser.Browser) {
	b.Picture(t, "flame-graph")
	awaitScript(t, b, "frames are drawn", frameElements+`.length > 50`)
	joined := strings.Join(evaluate[[]string](t, b, frameLabels), "\n")
	for _, want := range []string{"everything", "Launcher.main (truncated)", "MavenCli.doMain", "DefaultPlexusContainer.<init>"} {
		assert.Contains(t, joined, want)
	}
	assert.NotContains(t, joined, "parent not seen")
	status := evaluate[string](t, b, flameStatus)
	assert.Regexp(t, `^[0-9,]+ paths, [0-9.]+ (min|s|ms)\.`, status)
	assert.Contains(t, status, "of them are too narrow or too many to have frames: grey frames add them up.")
	assert.Contains(t, evaluate[string](t, b, flameLegend), "smaller paths")
	assert.Regexp(t, `^org\.apache\.maven\.cli\.MavenCli\.doMain .*– org\.apache\.maven\n[0-9.]+% of the picture · 1 call ·`,
		detailsOf(t, b, "MavenCli.doMain"))
}

// detailsOf moves the mouse to the widest frame of a function, and returns the shown details.
func detailsOf(t testing.TB, b *browser.Browser, function string) string {
	t.Helper()
	b.Do(t, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.querySelector('%s').dispatchEvent(new MouseEvent('mouseover'))`, frame(t, b, function))))
	return evaluate[string](t, b, frameDetails)
}

// hasColours compares the colour of a package in the legend with those of its frames.
func hasColours(t *testing.T, b *browser.Browser) {
	legend := evaluate[string](t, b, flameLegend)
	for _, want := range []string{"org.apache.maven", "org.codehaus.plexus"} {
		assert.Contains(t, legend, want)
	}
	colour := func(text string) string {
		return evaluate[string](t, b, fmt.Sprintf(`getComputedStyle(%s).getPropertyValue('--hue')`, legendOf(text)))
	}
	of := func(function string) string {
		return evaluate[string](t, b, fmt.Sprintf(`getComputedStyle(document.querySelector('%s rect')).getPropertyValue('--hue')`, frame(t, b, function)))
	}
	assert.Equal(t, colour("org.apache.maven"), of("MavenCli.doMain"))
	assert.Equal(t, colour("org.codehaus.plexus"), of("DefaultPlexusContainer.<init>"))
	assert.NotEqual(t, colour("org.apache.maven"), colour("org.codehaus.plexus"))
	assert.Greater(t, evaluate[int](t, b, `new Set(`+frameElements+`.map(g => getComputedStyle(g.querySelector('rect')).fill)).size`), 5)

	b.Do(t, chromedp.Evaluate[chromedp.Void](legendOf("org.codehaus.plexus")+`.click()`))
	assert.Contains(t, evaluate[string](t, b, fmt.Sprintf(`document.querySelector('%s').getAttribute('class')`, frame(t, b, "MavenCli.doMain"))), "faint")
	assert.NotContains(t, evaluate[string](t, b, fmt.Sprintf(`document.querySelector('%s').getAttribute('class')`, frame(t, b, "DefaultPlexusContainer.<init>"))), "faint")
	b.Screenshot(t, "flamegraph-legend")
}

// legendOf is the script for the button of a group.
func legendOf(group string) string {
	return fmt.Sprintf(`Array.from(document.querySelectorAll('#legend button')).find(e => e.textContent.startsWith(%q))`, group+" ")
}

func showsErrors(t *testing.T, b *browser.Browser) {
	assert.Contains(t, evaluate[string](t, b, flameLegend), "failed calls")
	assert.Positive(t, evaluate[int](t, b, `document.querySelectorAll('#chart rect.errors').length`))
	redraw(t, b, chromedp.Evaluate[chromedp.Void](`{
		const select = document.querySelector('select[name=si]');
		select.value = 'errors';
		select.dispatchEvent(new Event('change'));
	}`))
	assert.Contains(t, evaluate[string](t, b, `document.URL`), "si=errors")
	assert.Contains(t, evaluate[string](t, b, flameStatus), fmt.Sprintf("paths, %s errors.", figures.Count(mavenErrors)))
	b.Screenshot(t, "flamegraph-errors")
}

func findsFrames(t *testing.T, b *browser.Browser) {
	b.Press(t, "/plexuscontainer")
	awaitScript(t, b, "the page has searched for the whole text", `document.URL.includes('q=plexuscontainer')`)
	const found = `Array.from(document.querySelectorAll('#chart g.frame.found'))`
	awaitScript(t, b, "exactly the frames that match are marked", found+`.length > 0 && `+frameElements+`.every(g => {
		const {n, of} = g.__data__.data;
		return of?.m === 'small' || n.toLowerCase().includes('plexuscontainer') === g.classList.contains('found');
	})`)
	assert.Regexp(t, `Found: [0-9]+ functions in [0-9,]+ paths, with [0-9.]+% of the value, also in folded paths\.`, evaluate[string](t, b, flameStatus))
	assert.Equal(t, "plexuscontainer", evaluate[string](t, b, `document.querySelector('input[name=q]').value`), "the key / searches, and is no text")
	b.Picture(t, "flame-graph-search")
	b.Do(t, chromedp.Reload())
	awaitPicture(t, b)
	assert.True(t, evaluate[bool](t, b, found+`.length > 0`), "the address alone shows the same")
}

func zooms(t *testing.T, b *browser.Browser) {
	before := widthOf(t, b, "addPlexusInjector")
	paths := evaluate[string](t, b, flameStatus)
	redraw(t, b, chromedp.Click(chromedp.CSS(frame(t, b, "addPlexusInjector")+" rect")))
	assert.Contains(t, evaluate[string](t, b, `document.URL`), "at=")
	whole := evaluate[float64](t, b, `document.getElementById('chart').clientWidth`)
	assert.InDelta(t, whole, widthOf(t, b, "addPlexusInjector"), 2)
	assert.Greater(t, whole, before)
	assert.NotEqual(t, paths, evaluate[string](t, b, flameStatus))
	assert.Contains(t, textOf(t, b, "#alone"), "org.codehaus.plexus.DefaultPlexusContainer.addPlexusInjector")
	b.Screenshot(t, "flamegraph-zoom")

	redraw(t, b, chromedp.Click(chromedp.CSS("#out")))
	assert.NotContains(t, textOf(t, b, "#alone"), "addPlexusInjector")
	redraw(t, b, chromedp.Evaluate[chromedp.Void](`history.back()`))
	assert.Contains(t, textOf(t, b, "#alone"), "addPlexusInjector", "the browser's way back")
	redraw(t, b, chromedp.Click(chromedp.CSS("#all")))
	assert.InDelta(t, before, widthOf(t, b, "addPlexusInjector"), 2)
	assert.Equal(t, paths, evaluate[string](t, b, flameStatus))
}

func reachesFramesByKeys(t *testing.T, b *browser.Browser) {
	b.Do(t, chromedp.Focus(chromedp.CSS("#chart")), chromedp.KeyEvent(kb.ArrowDown))
	assert.Contains(t, evaluate[string](t, b, frameDetails), "everything")
	const current = `document.querySelector('#chart g.frame.current').__data__`
	for !evaluate[bool](t, b, frameElements+`.some(g => g.__data__.depth === `+current+`.depth && g.__data__.x0 > `+current+`.x0)`) {
		b.Do(t, chromedp.KeyEvent(kb.ArrowDown)) // to a callee, until there is a frame beside it
	}
	const name = current + `.data.n`
	first := evaluate[string](t, b, name)
	assert.Contains(t, evaluate[string](t, b, frameDetails), first)
	b.Do(t, chromedp.KeyEvent(kb.ArrowDown))
	assert.NotEqual(t, first, evaluate[string](t, b, name))
	b.Do(t, chromedp.KeyEvent(kb.ArrowUp))
	assert.Equal(t, first, evaluate[string](t, b, name))
	b.Do(t, chromedp.KeyEvent(kb.ArrowRight))
	assert.NotEqual(t, first, evaluate[string](t, b, name))
	b.Do(t, chromedp.KeyEvent(kb.ArrowLeft))
	assert.Equal(t, first, evaluate[string](t, b, name))
	b.Screenshot(t, "flamegraph-keys")
	redraw(t, b, chromedp.KeyEvent(kb.Enter))
	assert.Contains(t, textOf(t, b, "#alone"), first)
	zoomed := evaluate[string](t, b, `document.URL`)
	redraw(t, b, chromedp.KeyEvent(kb.Escape))
	assert.NotEqual(t, zoomed, evaluate[string](t, b, `document.URL`))
	redraw(t, b, chromedp.KeyEvent(kb.Home))
	assert.NotContains(t, evaluate[string](t, b, `document.URL`), "at=")
}

func tapsOnAPhone(t *testing.T, b *browser.Browser) {
	b.Phone(t)
	defer b.Desktop(t)
	b.Do(t, chromedp.Reload())
	awaitScript(t, b, "paths are folded for the width of a phone", `document.body.dataset.shown > 1`)
	awaitPicture(t, b)
	assert.Empty(t, evaluate[string](t, b, tooWide), "nothing is wider than a phone")
	b.Picture(t, "flame-graph-phone")
	place := evaluate[[]float64](t, b, fmt.Sprintf(`{
		const shown = document.querySelector('%s rect');
		shown.scrollIntoView({block: 'center'});
		const box = shown.getBoundingClientRect();
		[box.x + box.width / 2, box.y + box.height / 2];
	}`, frame(t, b, "MavenCli.doMain")))
	b.Tap(t, place[0], place[1])
	awaitScript(t, b, "the frame is alone", `document.getElementById('alone').innerText.includes('MavenCli.doMain')`)
	assert.Contains(t, evaluate[string](t, b, frameDetails), "MavenCli.doMain", "a finger shows the details, too")
	b.Screenshot(t, "flamegraph-phone-zoom")
}

// brightness is the script for the brightness of a colour, from 0 to 255.
const brightness = `(colour => { const [r, g, b] = colour.match(/[0-9.]+/g).map(Number); return 0.3 * r + 0.6 * g + 0.1 * b; })`

func isDark(t *testing.T, b *browser.Browser) {
	b.Prefer(t, "dark")
	defer b.Prefer(t, "light")
	page := evaluate[float64](t, b, brightness+`(getComputedStyle(document.body).backgroundColor)`)
	assert.Less(t, page, 60.0)
	shown := frame(t, b, "MavenCli.doMain")
	fill := evaluate[float64](t, b, fmt.Sprintf(brightness+`(getComputedStyle(document.querySelector('%s rect')).fill)`, shown))
	text := evaluate[float64](t, b, fmt.Sprintf(brightness+`(getComputedStyle(document.querySelector('%s .d3-flame-graph-label')).color)`, shown))
	assert.Less(t, fill, 140.0)
	assert.Greater(t, text, fill+80)
	b.Picture(t, "flame-graph-dark")
}

func hidesAFunction(t *testing.T, b *browser.Browser) {
	redraw(t, b, chromedp.Click(chromedp.CSS(frame(t, b, "addPlexusInjector")+" rect")))
	follow(t, b, "hide this function")
	awaitPicture(t, b)
	labels := strings.Join(evaluate[[]string](t, b, frameLabels), "\n")
	assert.NotContains(t, labels, "addPlexusInjector")
	assert.Contains(t, labels, "MavenCli.doMain")
	assert.Contains(t, textOf(t, b, "#refined"), "Hide: ^org\\.codehaus\\.plexus\\.DefaultPlexusContainer\\.addPlexusInjector$")
	follow(t, b, "remove")
	awaitPicture(t, b)
	redraw(t, b, chromedp.Click(chromedp.CSS(frame(t, b, "addPlexusInjector")+" rect")))
	follow(t, b, "all stacks with this function")
	awaitPicture(t, b)
	assert.Contains(t, evaluate[string](t, b, flameStatus), "The address leaves out")
	b.Screenshot(t, "flamegraph-focus")
	redraw(t, b, chromedp.Click(chromedp.CSS(frame(t, b, "addPlexusInjector")+" rect")))
	follow(t, b, "its callers and callees")
	assert.Contains(t, textOf(t, b, "#content"), "addPlexusInjector")
}

// showsAsText checks that a flame graph shows the name as text.
func showsAsText(t *testing.T, b *browser.Browser, name string) {
	t.Helper()
	awaitPicture(t, b)
	assert.Contains(t, strings.Join(evaluate[[]string](t, b, frameElements+`.map(g => g.__data__.data.n)`), "\n"), name)
	b.Do(t, chromedp.Evaluate[chromedp.Void](`document.querySelector('#chart g.frame:nth-of-type(2)').dispatchEvent(new MouseEvent('mouseover'))`))
	assert.Contains(t, textOf(t, b, "#details"), name)
	redraw(t, b, chromedp.Click(chromedp.CSS(`#chart g.frame:nth-of-type(2) rect`)))
	assert.Contains(t, textOf(t, b, "#alone"), name)
	assert.Contains(t, textOf(t, b, "#details"), name)
	assert.True(t, evaluate[bool](t, b, `window.harmed === undefined`), name)
	redraw(t, b, chromedp.Click(chromedp.CSS("#all")))
}

// The picture names missing data: classes that the tracer could not instrument, and callers that were not seen. An address
// of a path that does not exist leads to a message. The subtests with small trees are for steps that the test of the build lacks.
func TestAFlameGraphInABrowserSaysWhatItLacks(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	pages, otlp := testkit.Address(t), testkit.Address(t)
	c := kit.Start(t, onlyFlameGraphs(otlp, pages))
	traces := named("com.example.Cart.add", 1)
	spans := traces.ResourceSpans().At(0).ScopeSpans().At(0)
	spans.Scope().Attributes().PutInt("callbraid.missing.classes", 2)
	spans.Scope().Attributes().PutStr("callbraid.missing.first", "com.example.<b>Order</b>")
	orphan := spans.Spans().AppendEmpty()
	spans.Spans().At(0).CopyTo(orphan)
	orphan.SetSpanID(pcommon.SpanID{9})
	orphan.SetParentSpanID(pcommon.SpanID{8})
	orphan.SetName("Late.call")
	require.NoError(t, kit.SendOTLP(otlp, traces))
	c.AwaitMetric(t, 3, spansFolded)
	b.Open(t, "http://"+pages+"/services/com.example.Cart.add/ui/flamegraph")
	awaitPicture(t, b)
	missing := textOf(t, b, "#missing")
	assert.Contains(t, missing, "could not instrument some classes: 2 (com.example.<b>Order</b>, …)")
	assert.Contains(t, missing, "Calls in (parent not seen): 1;")
	assert.Contains(t, evaluate[string](t, b, flameLegend), "callers not seen")
	assert.Contains(t, evaluate[[]string](t, b, frameLabels), "(parent not seen)")
	b.Screenshot(t, "flamegraph-missing")

	b.Do(t, chromedp.Evaluate[chromedp.Void](`history.replaceState(null, '', '?at=1'); dispatchEvent(new PopStateEvent('popstate'))`))
	awaitScript(t, b, "the page shows the error", flameStatus+`.includes('no such path')`)
	redraw(t, b, chromedp.Click(chromedp.CSS("#all")))
	assert.NotContains(t, evaluate[string](t, b, flameStatus), "no such path")

	t.Run("Backspace zooms out", func(t *testing.T) { zoomsOutByBackspace(t, b) })
	t.Run("the picture has the width of the window", func(t *testing.T) { resizesThePicture(t, b) })
	site := "http://" + pages
	sendSmallTrees(t, otlp)
	c.AwaitMetric(t, 3+smallSpans, spansFolded)
	t.Run("top", func(t *testing.T) { sortsAndRefinesTop(t, b, site) })
	t.Run("peek", func(t *testing.T) { searchesInPeek(t, b, site) })
	t.Run("views of speedscope", func(t *testing.T) { showsViewsInSpeedscope(t, b, site) })
	t.Run("two versions", func(t *testing.T) { comparesVersions(t, b, site) })
	t.Run("two services", func(t *testing.T) { comparesServices(t, b, site) })
	t.Run("reset all", func(t *testing.T) { resetsAll(t, b, c, site, otlp) })
	assert.Empty(t, b.Errors())
	assertAllFrom(t, site, b.Requests())
	c.Stop(t)
}

// onlyFlameGraphs is the configuration of a collector that shows spans, by version.
func onlyFlameGraphs(otlp, pages string) string {
	return fmt.Sprintf(`
receivers: {otlp: {protocols: {http: {endpoint: %q}}}}
exporters: {flame_graph: {endpoint: %q, version_attribute: service.version}}
service: {pipelines: {traces: {receivers: [otlp], exporters: [flame_graph]}}}
`, otlp, pages)
}

// manyPaths is the number of call paths in the benchmark's tree.
const manyPaths = 100_000

// BenchmarkFirstPicture measures the time from the request for the page of a service with 100,000 call paths until its
// flame graph is drawn, in a browser that has loaded nothing before.
func BenchmarkFirstPicture(b *testing.B) {
	shows := browser.Start(b)
	pages, otlp := testkit.Address(b), testkit.Address(b)
	c := kit.Start(b, onlyFlameGraphs(otlp, pages))
	sent := sendPaths(b, otlp)
	c.AwaitMetric(b, float64(sent), spansFolded)
	var sum float64
	runs := 0
	for b.Loop() {
		shows.Do(b, chromedp.Navigate("http://"+pages+"/"), chromedp.Navigate("http://"+pages+"/services/shop/ui/flamegraph"))
		awaitPicture(b, shows)
		sum += evaluate[float64](b, shows, `performance.getEntriesByName('flame graph shown')[0].startTime`)
		runs++
	}
	paths := evaluate[string](b, shows, flameStatus)
	require.Regexp(b, regexp.MustCompile(`^1[0-9]{2},[0-9]{3} paths`), paths)
	b.ReportMetric(sum/float64(runs), "ms/picture")
	c.Stop(b)
}

// sendPaths sends a tree of more than manyPaths call paths, and returns the number of its spans.
func sendPaths(b *testing.B, otlp string) int {
	b.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	const each = 5_000 // in a message
	type call struct{ parent, function int }
	calls := make([]call, manyPaths+manyPaths/50)
	var open []int
	lengths := make([]uint64, len(calls))
	for i := range calls {
		for len(open) > 0 && (len(open) == 40 || r.IntN(100) < 45) {
			open = open[:len(open)-1]
		}
		calls[i] = call{-1, r.IntN(3000)}
		if len(open) > 0 {
			calls[i].parent = open[len(open)-1]
		}
		open = append(open, i)
		lengths[i] = 1 + uint64(r.ExpFloat64()*1e6)
	}
	for i := len(calls) - 1; i >= 0; i-- {
		if parent := calls[i].parent; parent >= 0 {
			lengths[parent] += lengths[i]
		}
	}
	id := func(i int) (id pcommon.SpanID) {
		binary.BigEndian.PutUint64(id[:], uint64(i+1))
		return id
	}
	for begin := 0; begin < len(calls); begin += each {
		traces := ptrace.NewTraces()
		resource := traces.ResourceSpans().AppendEmpty()
		resource.Resource().Attributes().PutStr("service.name", "shop")
		spans := resource.ScopeSpans().AppendEmpty().Spans()
		for i := begin; i < min(begin+each, len(calls)); i++ {
			span := spans.AppendEmpty()
			span.SetTraceID(pcommon.TraceID{1})
			span.SetSpanID(id(i))
			if calls[i].parent >= 0 {
				span.SetParentSpanID(id(calls[i].parent))
			}
			f := calls[i].function
			span.SetName(fmt.Sprintf("com.example.shop%d.package%d.Class%d.method%d", f%13, f%17, f%310, f))
			span.SetStartTimestamp(1_000_000_000)
			span.SetEndTimestamp(pcommon.Timestamp(1_000_000_000 + lengths[i]))
		}
		require.NoError(b, kit.SendOTLP(otlp, traces))
	}
	return len(calls)
}
