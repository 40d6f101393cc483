// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/bytefrog/sim/replay"
	"github.com/callbraid/callbraid/internal/componentkit/figures"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/test/kit"
	"github.com/callbraid/callbraid/test/kit/browser"
)

// Metrics of the exporter of flame graphs.
const spansFolded = "otelcol_exporter_flame_graph_spans"

// The numbers of Maven's capture: calls that ended, one that had not when the program did, and
// those that an exception ended.
const (
	mavenSpans  = 442_769 + 1
	mavenErrors = 1_840
)

func TestTheFlameGraphOfAMavenBuild(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	pages, endpoint := testkit.Address(t), testkit.Address(t)
	c := kit.Start(t, pipeline(endpoint, "service_name: maven", "", fmt.Sprintf("flame_graph: {endpoint: %q}", pages)))
	agent{endpoint: endpoint, capture: "maven"}.complete(t)
	c.AwaitMetric(t, mavenSpans, spansFolded)
	site := "http://" + pages

	b.Open(t, site)
	start := textOf(t, b, "body")
	for _, want := range []string{"maven", figures.Count(mavenSpans), "flame graph"} {
		assert.Contains(t, start, want)
	}
	b.Picture(t, "services")

	follow(t, b, "maven")
	assert.Contains(t, textOf(t, b, "body"), figures.Count(mavenSpans)+" calls, "+figures.Count(mavenErrors)+" errors")
	b.Screenshot(t, "service-maven")

	follow(t, b, "Flame graph")
	t.Run("flame graph", func(t *testing.T) { looksAtTheFlameGraph(t, b) })
	t.Run("leads to nothing that is not served", func(t *testing.T) { hides(t, b, site) })
	t.Run("top", func(t *testing.T) { listsFunctions(t, b, site) })
	t.Run("peek", func(t *testing.T) { peeks(t, b, site) })
	t.Run("downloads", func(t *testing.T) { downloads(t, b, site) })
	t.Run("speedscope shows the tree", func(t *testing.T) { showsTheTreeInSpeedscope(t, b, site) })
	t.Run("speedscope shows a trace", func(t *testing.T) { showsATraceInSpeedscope(t, b, site) })
	t.Run("a window", func(t *testing.T) { collectsAWindow(t, b, site, endpoint) })
	t.Run("reset", func(t *testing.T) { resets(t, b, site) })

	assert.Empty(t, b.Errors())
	assertAllFrom(t, site, b.Requests())
	c.Stop(t)
}

// assertAllFrom fails if the browser asked anybody else for something.
func assertAllFrom(t *testing.T, site string, requests []string) {
	t.Helper()
	assert.NotEmpty(t, requests)
	for _, address := range requests {
		assert.True(t, strings.HasPrefix(address, site+"/") || strings.HasPrefix(address, "data:"), "it asked for %s", address)
	}
}

// textOf is the visible text of the elements of a selector.
func textOf(t testing.TB, b *browser.Browser, selector string) string {
	t.Helper()
	return browser.Get(t, b, chromedp.Text(chromedp.CSS(selector)))
}

// evaluate returns the result of a script.
func evaluate[T any](t testing.TB, b *browser.Browser, script string) T {
	t.Helper()
	return browser.Get(t, b, chromedp.Evaluate[T](script))
}

// awaitScript waits until the result of a script is true.
func awaitScript(t testing.TB, b *browser.Browser, what, script string) {
	t.Helper()
	testkit.Eventually(t, what, func() (bool, string) { return evaluate[bool](t, b, script), "not so" })
}

// follow clicks on the link with the text, and waits for the page.
func follow(t testing.TB, b *browser.Browser, text string) {
	t.Helper()
	b.Leave(t, click("a", text))
}

// click clicks on the first element that has just the text.
func click(element, text string) chromedp.Action[chromedp.Void] {
	return chromedp.Click(chromedp.Search(fmt.Sprintf(`//%s[normalize-space(text())=%q]`, element, text)))
}

func hides(t *testing.T, b *browser.Browser, site string) {
	b.Open(t, site+"/services/maven/ui/top")
	for _, id := range []string{"graphbtn", "list", "disasm", "config"} {
		assert.True(t, evaluate[bool](t, b, fmt.Sprintf(`getComputedStyle(document.getElementById(%q)).display == 'none'`, id)), id)
	}
	assert.Contains(t, evaluate[string](t, b, `getComputedStyle(document.querySelector('.title h1 a'), '::after').content`), "overview")
}

// listsFunctions looks at pprof's top, in calls, which it shows as they are, and in time,
// which it rounds.
func listsFunctions(t *testing.T, b *browser.Browser, site string) {
	flat, cum := pathsOf(t, "maven").byFunction()
	for i, sampleType := range sampleTypes {
		b.Open(t, site+"/services/maven/ui/top?si="+sampleType)
		rows := evaluate[[][]string](t, b, `Array.from(document.querySelectorAll('#rows tr')).map(r => Array.from(r.children).map(c => c.innerText))`)
		require.Greater(t, len(rows), 20, sampleType)
		least := int64(math.MaxInt64)
		for _, row := range rows { // flat, flat%, sum%, cum, cum%, name
			name := row[5]
			require.NotNil(t, flat[name], name)
			assertShows(t, flat[name][i], row[0], name)
			assertShows(t, cum[name][i], row[3], name)
			assert.LessOrEqual(t, flat[name][i], least, "the largest first")
			least = flat[name][i]
		}
	}
	b.Screenshot(t, "top")
}

// assertShows fails unless a text is a value, or that many nanoseconds rounded to two digits
// behind the point.
func assertShows(t *testing.T, value int64, text, what string) {
	t.Helper()
	units := []struct {
		name string
		size float64
	}{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"hrs", 3600e9}, {"mins", 60e9}, {"s", 1e9}, {"", 1}}
	at := slices.IndexFunc(units, func(u struct {
		name string
		size float64
	}) bool {
		return strings.HasSuffix(text, u.name)
	})
	shown, err := strconv.ParseFloat(strings.TrimSuffix(text, units[at].name), 64)
	require.NoError(t, err, "%s: %q", what, text)
	assert.InDelta(t, float64(value)/units[at].size, shown, 0.00501, "%s: %q", what, text)
}

func peeks(t *testing.T, b *browser.Browser, site string) {
	b.Open(t, site+"/services/maven/ui/peek?f=DefaultMaven")
	assert.Contains(t, textOf(t, b, "#content"), "PlexusContainer")
}

func downloads(t *testing.T, b *browser.Browser, site string) {
	directory := t.TempDir()
	b.DownloadTo(t, directory)
	b.Open(t, site+"/services/maven/")
	await := func(pattern string) string { return browser.Downloaded(t, directory, pattern) }
	for text, name := range map[string]string{"pprof": "profile.pb.gz", "folded stacks": "profile.folded", "file of speedscope": "profile.speedscope.json"} {
		b.Do(t, click("a", text))
		await(name)
	}
	want := pathsOf(t, "maven").stacks()
	t.Run("pprof", func(t *testing.T) { assertSame(t, want, stacksOfProfile(t, await("profile.pb.gz"))) })
	t.Run("folded stacks", func(t *testing.T) {
		text, err := os.ReadFile(await("profile.folded"))
		require.NoError(t, err)
		got, _ := foldedStacks(t, string(text))
		assertSame(t, in(want, 2), got)
	})
	t.Run("speedscope", func(t *testing.T) {
		path := await("profile.speedscope.json")
		assertValid(t, "speedscope-file-format-schema.json", path)
		got := stacksOfSpeedscope(t, path)
		for i, sampleType := range sampleTypes {
			assertSame(t, in(want, i), got[sampleType])
		}
	})
	// The largest trace without dropped spans.
	trace := evaluate[string](t, b, `{
		const spans = a => Number(a.closest('tr').children[1].innerText); // none where some are gone
		const links = Array.from(document.querySelectorAll("td a[href*='/traces/']")).filter(a => spans(a) > 0);
		links.sort((a, b) => spans(b) - spans(a));
		links[0].href.match(/traces\/[0-9a-f]{32}\.speedscope\.json/)[0];
	}`)
	t.Run("a trace", func(t *testing.T) {
		path := filepath.Join(directory, "trace.json")
		require.NoError(t, os.WriteFile(path, []byte(fetch(t, site+"/"+trace)), 0o600))
		assertValid(t, "speedscope-file-format-schema.json", path)
		isTraceOf(t, "maven", path)
	})
}

// assertValid fails unless a file is valid by a schema that the formats are tested with.
func assertValid(t *testing.T, schema, path string) {
	t.Helper()
	compiled, err := jsonschema.NewCompiler().Compile(filepath.Join("../internal/call/treeformat/testdata", schema))
	require.NoError(t, err)
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close() // read only
	document, err := jsonschema.UnmarshalJSON(file)
	require.NoError(t, err)
	require.NoError(t, compiled.Validate(document), path)
}

// TestGoldenFilesOfTreeFormatsAreValid checks the files that the formats' unit tests compare with.
func TestGoldenFilesOfTreeFormatsAreValid(t *testing.T) {
	const golden = "../internal/call/treeformat/testdata/"
	assertValid(t, "speedscope-file-format-schema.json", golden+"shop.speedscope.json")
	assertValid(t, "speedscope-file-format-schema.json", golden+"allocations.speedscope.json")
	assertValid(t, "speedscope-file-format-schema.json", golden+"checkout.speedscope.json")
}

// collectsAWindow has a window collected while other programs run.
func collectsAWindow(t *testing.T, b *browser.Browser, site, endpoint string) {
	b.Open(t, site+"/services/maven/")
	b.Do(t, chromedp.SetValue(chromedp.CSS("select[name=seconds]"), "5"))
	// Programs run one after the other at their own speed until the window is complete, so some of their calls are in it.
	complete, played := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(played)
		for {
			agent{endpoint: endpoint, capture: "shop", replay: replay.Options{Speed: 1}}.play(t.Context(), t)
			select {
			case <-complete:
				return
			default:
			}
		}
	}()
	b.Leave(t, click("button", "Collect from now on"))
	close(complete)
	<-played
	assert.Equal(t, site+"/windows/1/", evaluate[string](t, b, `document.URL`))
	assert.Contains(t, textOf(t, b, "body"), "A window of 5")
	follow(t, b, "speedscope")
	awaitProfile(t, b)
	assert.Contains(t, strings.ToLower(evaluate[string](t, b, `document.URL`)), "windows%2f1%2f")
	b.Open(t, site+"/windows/1/")
	t.Run("compare", func(t *testing.T) { comparesTheWindow(t, b, site) })
	b.Open(t, site+"/windows/1/")
	follow(t, b, "the service")
	assert.Regexp(t, `\b5(\.\d+)?s from`, textOf(t, b, "body"))
}

// awaitProfile waits until speedscope has drawn a profile. Then the page's title is the profile's.
func awaitProfile(t testing.TB, b *browser.Browser) {
	t.Helper()
	awaitScript(t, b, "speedscope shows a profile", `document.title.endsWith(' - speedscope') && document.querySelectorAll('canvas').length >= 3`)
}

// functionsInSpeedscope are the functions with the most self time in the list of speedscope's third view.
func functionsInSpeedscope(t testing.TB, b *browser.Browser) string {
	t.Helper()
	b.Do(t, chromedp.Evaluate[chromedp.Void](
		`Array.from(document.querySelectorAll('div')).findLast(e => e.innerText.endsWith('Sandwich') && e.children.length <= 1).click()`))
	awaitScript(t, b, "functions are listed", `document.querySelectorAll('td').length > 3`)
	return evaluate[string](t, b, `Array.from(document.querySelectorAll('tr')).map(r => r.innerText).join('\n')`)
}

func showsTheTreeInSpeedscope(t *testing.T, b *browser.Browser, site string) {
	b.Open(t, site+"/services/maven/")
	follow(t, b, "speedscope")
	awaitProfile(t, b)
	assert.Equal(t, "maven - speedscope", evaluate[string](t, b, `document.title`))
	b.Picture(t, "speedscope")
	assert.Contains(t, functionsInSpeedscope(t, b), "ClassRealm.findClassInternal")
	b.Screenshot(t, "speedscope-sandwich")
}

func showsATraceInSpeedscope(t *testing.T, b *browser.Browser, site string) {
	b.Open(t, site+"/services/maven/")
	b.Do(t, chromedp.Evaluate[chromedp.Void](`{
		const links = Array.from(document.querySelectorAll('td a[href*="speedscope/"]'));
		const spans = a => parseInt(a.closest('tr').children[1].innerText);
		links.sort((a, b) => spans(b) - spans(a));
		links[0].id = 'viewed';
	}`))
	b.Leave(t, chromedp.Click(chromedp.CSS("#viewed")))
	awaitProfile(t, b)
	assert.Regexp(t, `^trace [0-9a-f]{32} - speedscope$`, evaluate[string](t, b, `document.title`))
	b.Screenshot(t, "speedscope-trace")
	assert.Contains(t, functionsInSpeedscope(t, b), "org.apache.maven.")
}

// comparesTheWindow compares a window, in which a shop ran, with all calls of the service, which are those of Maven and the
// shop. It goes there and on by clicks.
func comparesTheWindow(t *testing.T, b *browser.Browser, site string) {
	follow(t, b, "Compare")
	assert.Equal(t, "services/maven/", evaluate[string](t, b, `document.querySelector('select[name=before]').value`), "the form proposes it")
	b.Do(t, chromedp.SetValue(chromedp.CSS("select[name=by]"), "calls"))
	b.Leave(t, click("button", "Compare"))
	text := textOf(t, b, "body")
	for _, want := range []string{"Difference", "Before: maven", "After: maven, window 1", "Functions that differ most in calls", "(only before)"} {
		assert.Contains(t, text, want)
	}
	assert.Regexp(t, `calls\s+[1-9][\d,]*\s+[1-9]`, text, "both have calls")
	shown := evaluate[string](t, b, `document.URL`)
	b.Picture(t, "compare")

	const frames = `document.querySelectorAll('svg.flames')[0].querySelectorAll('svg').length`
	all := evaluate[int](t, b, frames)
	assert.Greater(t, all, 20)
	assert.Equal(t, 3, evaluate[int](t, b, `document.querySelectorAll('svg.flames').length`))
	b.Do(t, chromedp.Evaluate[chromedp.Void](
		`Array.from(document.querySelectorAll('svg.flames a')).find(a => a.textContent.includes('addPlexusInjector')).id = 'alone'`))
	b.Leave(t, chromedp.Click(chromedp.CSS("#alone rect")))
	assert.Contains(t, textOf(t, b, "body"), "Shown: org.codehaus.plexus.DefaultPlexusContainer.addPlexusInjector")
	assert.Less(t, evaluate[int](t, b, frames), all)
	b.Screenshot(t, "compare-alone")
	follow(t, b, "show all")
	assert.Equal(t, all, evaluate[int](t, b, frames))

	b.Open(t, shown)
	assert.Equal(t, all, evaluate[int](t, b, frames), "the address alone shows the same")
	b.Phone(t)
	b.Open(t, shown)
	assert.Empty(t, evaluate[string](t, b, tooWide), "nothing is wider than a phone")
	b.Screenshot(t, "compare-phone")
	for _, path := range []string{"/", "/services/maven/", "/windows/1/"} {
		b.Open(t, site+path)
		assert.Empty(t, evaluate[string](t, b, tooWide), path)
	}
	b.Open(t, site+"/services/maven/")
	b.Picture(t, "service-phone")
	b.Desktop(t)
}

// tooWide are the elements that are wider than the page, except those inside an element that scrolls.
const tooWide = `document.documentElement.scrollWidth <= document.documentElement.clientWidth ? '' :
	Array.from(document.body.querySelectorAll('*')).filter(e => !e.closest('.scroll, svg') &&
	e.getBoundingClientRect().right > document.documentElement.clientWidth + 1).map(e => e.outerHTML.slice(0, 200)).join('\n') || 'something'`

func resets(t *testing.T, b *browser.Browser, site string) {
	b.Open(t, site+"/services/maven/")
	b.Leave(t, click("button", "Reset this service"))
	assert.Equal(t, site+"/", evaluate[string](t, b, `document.URL`))
	assert.NotContains(t, textOf(t, b, "body"), figures.Count(mavenSpans))
}

// hostileNames are names that would run, or look like something else, if pages did not treat them
// as text.
var hostileNames = []string{
	`<img src=x onerror="window.harmed=1">`,
	`</script><script>window.harmed=1</script>`,
	`"'); window.harmed=1; //`,
	`{{constructor.constructor('window.harmed=1')()}}`,
	`<a href="javascript:window.harmed=1">click</a>`,
	`名前.имя.نام.नाम`,
}

func TestHostileNamesAreTextInABrowser(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	pages, otlp := testkit.Address(t), testkit.Address(t)
	c := kit.Start(t, onlyFlameGraphs(otlp, pages))
	site := "http://" + pages
	for i, name := range hostileNames {
		require.NoError(t, kit.SendOTLP(otlp, named(name, byte(i+1))))
	}
	c.AwaitMetric(t, float64(2*len(hostileNames)), spansFolded)
	b.Open(t, site)
	start := textOf(t, b, "body")
	for _, name := range hostileNames {
		assert.Contains(t, start, name)
	}
	for i, name := range hostileNames {
		b.Open(t, site)
		b.Do(t, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(
			`Array.from(document.querySelectorAll('td.name a')).find(a => a.innerText == %q).id = 'service'`, name)))
		b.Leave(t, chromedp.Click(chromedp.CSS("#service")))
		assert.Contains(t, textOf(t, b, "h1"), name)
		assert.Contains(t, textOf(t, b, "table"), name)
		follow(t, b, "Flame graph")
		showsAsText(t, b, name)
		b.Screenshot(t, fmt.Sprintf("hostile-%d", i))
		address := evaluate[string](t, b, `location.origin + location.pathname`)
		b.Open(t, strings.Replace(address, "ui/flamegraph", "ui/top", 1))
		assert.Contains(t, textOf(t, b, "#rows"), name)
		b.Open(t, strings.Replace(address, "ui/flamegraph", "ui/peek", 1))
		assert.Contains(t, textOf(t, b, "#content"), name)
		b.Open(t, strings.Replace(address, "ui/flamegraph", "", 1))
		follow(t, b, "speedscope")
		awaitProfile(t, b)
		assert.Equal(t, name+" - speedscope", evaluate[string](t, b, `document.title`))
		assert.Contains(t, functionsInSpeedscope(t, b), name)
		assert.True(t, evaluate[bool](t, b, `window.harmed === undefined`), name)
	}
	assert.Empty(t, b.Errors())
	assertAllFrom(t, site, b.Requests())
	c.Stop(t)
}

// named is a trace in which the service and a callee have the name.
func named(name string, trace byte) ptrace.Traces {
	traces := ptrace.NewTraces()
	resource := traces.ResourceSpans().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", name)
	spans := resource.ScopeSpans().AppendEmpty().Spans()
	for id, function := range []string{name, name} {
		span := spans.AppendEmpty()
		span.SetTraceID(pcommon.TraceID{trace})
		span.SetSpanID(pcommon.SpanID{byte(id + 1)})
		if id > 0 {
			span.SetParentSpanID(pcommon.SpanID{byte(id)})
		}
		span.SetName(function)
		span.SetStartTimestamp(1_000_000_000)
		span.SetEndTimestamp(pcommon.Timestamp(1_000_000_000 + 5_000_000/(id+1)))
	}
	return traces
}
