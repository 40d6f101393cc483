// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/call/treeformat"
)

// hostileNames are names of services and functions that are difficult for pages and addresses.
var hostileNames = map[string]string{
	"markup":                  `</script><script>alert(1)</script><img src=x onerror=alert(1)>`,
	"quotes":                  "\"'`;alert(1)//\\",
	"template":                `{{.Title}} ${1} %s %!d(string=)`,
	"path":                    "../../etc/passwd",
	"dots":                    "..",
	"dot":                     ".",
	"nothing":                 "",
	"tilde":                   "~..",
	"slashes":                 "a//b/",
	"characters of addresses": "a?b=c&d#e%2Fé+ ;:@",
	"controls":                "a\x00b\r\nSet-Cookie: c\x1b[31m",
	"no UTF-8":                "a\xff\xfeb\xc3",
	"another direction":       "\u202egnp.exe\u2066",
	"other letters":           "名前.имя.نام.नाम",
	"an end of script":        "<!--<script>",
	"a scheme":                "javascript:alert(1)",
	"as long as it can be":    strings.Repeat("long<b>", 150),
	"very long":               strings.Repeat("x", 1<<20),
}

// someNames returns the names of which tests make every page: all, or two in a short test. The two go through the same
// code as all.
func someNames(short bool) map[string]string {
	if !short {
		return hostileNames
	}
	some := map[string]string{}
	for _, what := range []string{"markup", "no UTF-8"} {
		some[what] = hostileNames[what]
	}
	return some
}

// elements are those of a page.
func elements(t *testing.T, page string) []*html.Node {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	require.NoError(t, err)
	var all []*html.Node
	for node := range root.Descendants() {
		if node.Type == html.ElementNode {
			all = append(all, node)
		}
	}
	return all
}

func attribute(node *html.Node, name string) string {
	for _, a := range node.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// textOf is all text of a page.
func textOf(t *testing.T, page string) string {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	require.NoError(t, err)
	var b strings.Builder
	for node := range root.Descendants() {
		if node.Type == html.TextNode {
			b.WriteString(node.Data)
		}
	}
	return b.String()
}

func TestThePageOfAllServicesListsEach(t *testing.T) {
	text := textOf(t, page(t, serve(playing("shop", "Cart.add")), "/"))
	for _, want := range []string{"shop", "3+", "1,234,567", "25", "4", "2026-11-22 07:00:00 UTC", "flame graph", "Cart.add"} {
		assert.Contains(t, text, want)
	}
}

func TestThePageWithoutServicesReportsThatNoneHaveArrived(t *testing.T) {
	assert.Contains(t, page(t, serve(&played{}), "/"), "have arrived yet")
}

func TestThePageOfAServiceListsItsFunctions(t *testing.T) {
	text := textOf(t, page(t, serve(playing("shop", "Cart.add")), "/services/shop/"))
	for _, want := range []string{"1,234,567 calls, 4 errors", "5 call paths", "500µs", "Price.of", "Cart.add", "(parent not seen)", "1 kept, 7 dropped"} {
		assert.Contains(t, text, want)
	}
}

// sections are the texts of a page's sections, by their headings.
func sections(t *testing.T, page string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, e := range elements(t, strings.ReplaceAll(page, "<wbr>", "")) {
		if e.Data != "section" {
			continue
		}
		var heading string
		var words []string
		for node := range e.Descendants() {
			text := strings.Join(strings.Fields(node.Data), " ")
			switch {
			case node.Type != html.TextNode || text == "":
			case node.Parent.Data == "h2":
				heading = text
			default:
				words = append(words, text)
			}
		}
		found[heading] = strings.Join(words, " ")
	}
	return found
}

func TestThePageOfAServiceAnswersTheFirstQuestions(t *testing.T) {
	p := playing("shop", "Cart.add")
	h := serve(p)
	got := sections(t, page(t, h, "/services/shop/"))
	assert.Contains(t, got["Most time"], "500µs 52.6% 500µs 8 Price.of 300µs 31.6% 500µs 3 Cart.add")
	assert.Contains(t, got["Failures"], "1 1 33.3% Cart.add")
	assert.Contains(t, got["Slow now"], "Measure 10s")
	assert.Contains(t, got["Changes"], "nothing to compare with yet")
	assert.Len(t, got, 4)

	got = sections(t, page(t, h, "/services/shop/profiles/Cart.add/Cart.adds/"))
	assert.Contains(t, got["Most samples"], "Price.of")
	assert.Len(t, got, 2, "samples have no failures, and no time")
}

// An exception that leaves four functions is a failure of each. It began in the deepest.
func TestFailuresAreSortedByWhereTheyBegan(t *testing.T) {
	p := playing("shop", "f")
	s := p.trees[treeKey{"shop", calltree.Calls}]
	s.Nodes = []calltree.Node{
		{Parent: -1, Function: "main", Calls: 1, Errors: 1},
		{Parent: 0, Function: "order", Calls: 100, Errors: 40},
		{Parent: 1, Function: "pay", Calls: 100, Errors: 40},
		{Parent: 2, Function: "connect", Calls: 50, Errors: 45, Self: 1},
		{Parent: 0, Function: "log", Calls: 10},
	}
	p.trees[treeKey{"shop", calltree.Calls}] = s
	got := sections(t, page(t, serve(p), "/services/shop/"))
	assert.Equal(t, "Began here Failed of calls Function 45 45 90.0% connect 0 40 40.0% order 0 40 40.0% pay 0 1 100.0% main", got["Failures"])
	for i := range s.Nodes {
		s.Nodes[i].Errors = 0
	}
	assert.Equal(t, "No call has failed.", sections(t, page(t, serve(p), "/services/shop/"))["Failures"])
}

// Of ten seconds in which a function takes twice as long as before, the page lists the function first.
func TestThePageShowsWhatIsSlowNow(t *testing.T) {
	p := playing("shop", "f")
	all := p.trees[treeKey{"shop", calltree.Calls}]
	all.Nodes = []calltree.Node{
		{Parent: -1, Function: "fast", Calls: 1100, Self: 1100e6},
		{Parent: -1, Function: "slow", Calls: 110, Self: 120e6}, // 10 of them 2 ms each
		{Parent: -1, Function: "little", Calls: 20, Self: 21},
	}
	p.trees[treeKey{"shop", calltree.Calls}] = all
	var asked time.Duration
	window := calltree.Snapshot{Service: "shop", Nodes: []calltree.Node{
		{Parent: -1, Function: "fast", Calls: 100, Self: 100e6},
		{Parent: -1, Function: "slow", Calls: 10, Self: 20e6},
		{Parent: -1, Function: "little", Calls: 10, Self: 20},
		{Parent: -1, Function: "(parent not seen)", Mark: calltree.MissingParent},
	}}
	p.collect = func(_ context.Context, _ string, _ calltree.Kind, d time.Duration) (calltree.Snapshot, error) {
		asked = d
		window.From, window.To = started, started.Add(d)
		return window, nil
	}
	measure := func() string {
		w := post(serve(p), "/services/shop/now", nil, nil)
		require.Equal(t, http.StatusOK, w.Code, w.Body)
		return sections(t, w.Body.String())["Slow now"]
	}
	got := measure()
	assert.Equal(t, nowLength, asked)
	assert.Contains(t, got, "120 calls ended in the 10s until 06:00:10.")
	assert.Contains(t, got, "slower than usual")
	assert.Contains(t, got, "2ms 1ms +100.0% 10 slow 1ms 1ms = 100 fast 2ns 0s ×20 10 little")

	window.Nodes = window.Nodes[:1]
	assert.Contains(t, measure(), "No function is slower than usual.")
	window.Nodes = nil
	assert.Contains(t, measure(), "No call ended in the 10s until 06:00:10.")

	for target, status := range map[string]int{
		"/services/none/now": http.StatusNotFound, "/windows/1/now": http.StatusBadRequest, "/services/shop/profiles/f/fs/now": http.StatusBadRequest,
	} {
		assert.Equal(t, status, post(serve(p), target, nil, nil).Code, target)
	}
}

// The page of a service compares its latest window with all calls, and another version with this one.
func TestThePageShowsWhatChanged(t *testing.T) {
	p := playing("shop", "f")
	window := shop("shop", calltree.Calls, "f")
	window.Nodes[3].Self += 1_000_000
	p.collect = func(_ context.Context, _ string, _ calltree.Kind, d time.Duration) (calltree.Snapshot, error) {
		return window, nil
	}
	h := serve(p)
	require.Equal(t, http.StatusSeeOther, post(h, "/windows", url.Values{"seconds": {"5"}, "service": {"shop"}}, nil).Code)
	for _, target := range []string{"/services/shop/", "/windows/1/"} {
		html := page(t, h, target)
		got := sections(t, html)["Changes"]
		assert.Contains(t, got, "From shop to shop, window 1 , with equal totals.", target)
		assert.Regexp(t, `1\.5ms \S+ Price\.of`, got, target)
		assert.Contains(t, html, "compare?after=windows%2F1%2F&amp;before=services%2Fshop%2F&amp;by=time&amp;scale=equal", target)
	}

	versions := playing("shop@2", "f")
	versions.services = append(versions.services, calltree.Service{Name: "shop@1", Kinds: []calltree.Kind{calltree.Calls}})
	versions.trees[treeKey{"shop@1", calltree.Calls}] = shop("shop@1", calltree.Calls, "g")
	got := sections(t, page(t, serve(versions), "/services/shop@2/"))["Changes"]
	assert.Contains(t, got, "From shop@1 to shop@2 , with equal totals.")
	assert.Contains(t, got, "300µs 0s gone g")
}

func TestThePageOfAProfileHasItsUnit(t *testing.T) {
	p := playing("shop", "f")
	for unit, want := range map[string]string{
		"bytes": "488.3 KiB", "count": "500,000", "": "500,000", "nanoseconds": "500µs", "{goat}": "500,000 {goat}",
	} {
		kind := calltree.Kind{Type: "x", Unit: unit}
		p.trees[treeKey{"shop", kind}] = shop("shop", kind, "f")
		text := textOf(t, page(t, serve(p), "/services/shop/profiles/x/"+segment(unit)+"/"))
		assert.Contains(t, text, want, unit)
	}
}

// The test follows all links and sends all forms, with hostile names, and checks each page.
func TestAllLinksAndFormsOfPagesWork(t *testing.T) {
	for what, name := range someNames(testing.Short()) {
		t.Run(what, func(t *testing.T) {
			if len(name) > 1<<16 {
				t.Skip("the bound of names keeps it out of addresses: see TestANameOfAMegabyteIsShownShort")
			}
			p := playing(name, name)
			c := crawler{t: t, handler: serveWith(p, &stored{trees: p.trees, few: true}), name: name, seen: map[string]bool{}}
			c.visit("/")
			for _, want := range []string{
				"/services/" + segment(name) + "/",
				"/services/" + segment(name) + "/ui/flamegraph",
				"/services/" + segment(name) + "/profile.pb.gz",
				"/services/" + segment(name) + "/profiles/" + segment(name) + "/" + segment(name+"s") + "/ui/flamegraph",
				"/windows/1/profile.speedscope.json",
				"/services/" + segment(name) + "/at/2026-11-22T06Z/profile.pb.gz",
				"/services/" + segment(name) + "/profiles/" + segment(name) + "/" + segment(name+"s") + "/at/2026-11-21Z/ui/flamegraph",
				"/compare?" + url.Values{"before": {"windows/1/"}, "after": {"windows/1/"}, "by": {"time"}, "scale": {"real"}}.Encode(),
			} {
				assert.True(t, c.seen[want], "%s is found", want)
			}
			assert.Contains(t, c.compared, "services/"+segment(name)+"/", "a page leads to its comparison")
			for _, want := range []string{
				"/services/" + segment(name) + "/profile.speedscope.json",
				"/services/" + segment(name) + "/profiles/" + segment(name) + "/" + segment(name+"s") + "/profile.speedscope.json",
				"/windows/1/profile.speedscope.json",
				"/services/" + segment(name) + "/at/2026-11-22T06Z/profile.speedscope.json",
				"/traces/01000000000000000000000000000000.speedscope.json",
			} {
				assert.Contains(t, c.loaded, want, "speedscope shows it")
			}
		})
	}
}

type crawler struct {
	t       *testing.T
	handler *Handler
	name    string // of the service, and of a function
	seen    map[string]bool
	// loaded are the addresses that speedscope loads, and compared those of trees in links to comparisons.
	loaded, compared []string
}

// visit checks a page and its links.
func (c *crawler) visit(target string) {
	if c.seen[target] {
		return
	}
	c.seen[target] = true
	w := get(c.t, c.handler, target)
	if w.Code == http.StatusSeeOther {
		c.follow(target, w.Header().Get("Location"))
		return
	}
	require.Equal(c.t, http.StatusOK, w.Code, "%s: %.300s", target, w.Body)
	assert.Equal(c.t, "nosniff", w.Header().Get("X-Content-Type-Options"), target)
	assert.Equal(c.t, "DENY", w.Header().Get("X-Frame-Options"), target)
	assert.Contains(c.t, w.Header().Get("Content-Security-Policy"), "default-src 'none'", target)
	if !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") || target == speedscopePath { // its own test looks at it
		return
	}
	c.look(target, w.Body.String(), w.Header().Get("Content-Security-Policy"))
}

// look is content with a page that has no script but pprof's, live.js and that of flame graphs, leads nowhere outside, and
// shows the name as text.
func (c *crawler) look(target, page, policy string) {
	ofFlameGraph := strings.Contains(target, "/ui/flamegraph")
	ofPprof := strings.Contains(target, "/ui/") && !ofFlameGraph
	for _, e := range elements(c.t, page) {
		for _, a := range e.Attr {
			assert.False(c.t, strings.HasPrefix(a.Key, "on"), "%s: no handler in <%s %s>", target, e.Data, a.Key)
		}
		switch e.Data {
		case "script", "style":
			if ofFlameGraph && e.Data == "script" {
				if attribute(e, "type") != "application/json" {
					c.follow(target, attribute(e, "src"))
					assert.Nil(c.t, e.FirstChild, target)
				}
				continue
			}
			if !ofPprof {
				require.Equal(c.t, "script", e.Data, "%s: no <style>", target)
				assert.Equal(c.t, "live.js", strings.TrimLeft(attribute(e, "src"), "./"), target)
				assert.Nil(c.t, e.FirstChild, target)
				assert.Contains(c.t, policy, "script-src 'self'", target)
				continue
			}
			assert.Contains(c.t, policy, "'nonce-"+attribute(e, "nonce")+"'", target)
		case "img", "iframe", "object", "embed", "base":
			assert.Fail(c.t, target, "no <%s>", e.Data)
		case "a", "link":
			c.follow(target, attribute(e, "href"))
		case "form":
			c.send(target, e)
		}
	}
	if !ofPprof {
		assert.Contains(c.t, textOf(c.t, page), shownName(c.name), target)
	}
}

// notServed are targets of hidden links on pprof's pages.
var notServed = map[string]bool{"graph": true, "source": true, "disasm": true}

func (c *crawler) follow(from, href string) {
	base, err := url.Parse(from)
	require.NoError(c.t, err)
	to, err := base.Parse(href)
	require.NoError(c.t, err, "%s: %q", from, href)
	if to.Scheme == "data" {
		return
	}
	require.Empty(c.t, to.Host, "%s leads to %s", from, href)
	if to.Path == speedscopePath && to.Fragment != "" {
		c.load(to)
	}
	if to.Path == "/compare" {
		c.compared = append(c.compared, to.Query().Get(queryAfter))
	}
	to.Fragment = ""
	if parts := strings.Split(to.EscapedPath(), "/"); notServed[parts[len(parts)-1]] {
		assert.Equal(c.t, http.StatusNotFound, get(c.t, c.handler, to.String()).Code, to.String())
		return
	}
	c.visit(to.String())
}

// load visits the profile that the viewer loads, as its script finds it in the fragment.
func (c *crawler) load(viewer *url.URL) {
	for part := range strings.SplitSeq(viewer.EscapedFragment(), "&") {
		name, escaped, _ := strings.Cut(part, "=")
		value, err := url.PathUnescape(escaped)
		require.NoError(c.t, err, viewer)
		if name == "profileURL" {
			profile, err := viewer.Parse(value)
			require.NoError(c.t, err, viewer)
			require.Empty(c.t, profile.Host)
			c.visit(profile.String())
			c.loaded = append(c.loaded, profile.EscapedPath())
		}
	}
}

// send sends a form as a browser does, and follows where that leads.
func (c *crawler) send(from string, form *html.Node) {
	fields := url.Values{}
	for node := range form.Descendants() {
		switch {
		case node.Data == "input":
			fields.Set(attribute(node, "name"), attribute(node, "value"))
		case node.Data == "option" && fields.Get(attribute(node.Parent, "name")) == "": // the first one with a value
			fields.Set(attribute(node.Parent, "name"), attribute(node, "value"))
		}
	}
	base, err := url.Parse(from)
	require.NoError(c.t, err)
	to, err := base.Parse(attribute(form, "action"))
	require.NoError(c.t, err)
	if attribute(form, "method") == "get" {
		to.RawQuery = fields.Encode()
		c.visit(to.String())
		return
	}
	if c.seen["POST "+to.Path+fields.Encode()] {
		return
	}
	c.seen["POST "+to.Path+fields.Encode()] = true
	w := post(c.handler, to.String(), fields, nil)
	if strings.HasSuffix(to.Path, "/now") {
		require.Equal(c.t, http.StatusOK, w.Code, "%s: %s", to, w.Body)
		c.look(to.String(), w.Body.String(), w.Header().Get("Content-Security-Policy"))
		return
	}
	require.Equal(c.t, http.StatusSeeOther, w.Code, "%s: %s", to, w.Body)
	c.follow(to.String(), w.Header().Get("Location"))
}

func TestANameOfAMegabyteIsShownShort(t *testing.T) {
	name := hostileNames["very long"]
	if testing.Short() {
		name = name[:1<<14]
	}
	h := serve(playing("shop", name))
	for _, target := range []string{"/", "/services/shop/"} {
		assert.Contains(t, textOf(t, page(t, h, target)), strings.Repeat("x", longestName)+"…", target)
	}
	for _, target := range []string{"ui/flamegraph", "ui/top", "ui/peek?f=x", "profile.pb.gz", "profile.folded", "profile.speedscope.json"} {
		page(t, h, "/services/shop/"+target)
	}
}

func TestPprofsPagesShowNamesAsText(t *testing.T) {
	for what, name := range someNames(testing.Short()) {
		t.Run(what, func(t *testing.T) {
			if len(name) > 1<<16 {
				t.Skip("it takes seconds: see TestANameOfAMegabyteIsShownShort")
			}
			h := serve(playing("shop", name))
			shown := treeformat.Name(name)
			// Names are in scripts there, as strings.
			assert.Contains(t, scriptStrings(t, page(t, h, "/services/shop/ui/top")), shown)
			assert.Contains(t, textOf(t, page(t, h, "/services/shop/ui/peek?f=.")), shown)
		})
	}
}

// scriptStrings are the strings of the last script of a page, where pprof's data is.
func scriptStrings(t *testing.T, page string) []string {
	t.Helper()
	var script string
	for _, e := range elements(t, page) {
		if e.Data == "script" {
			script = e.FirstChild.Data
		}
	}
	var all []string
	for rest := script; ; {
		begin := strings.IndexByte(rest, '"')
		if begin < 0 {
			return all
		}
		rest = rest[begin:]
		text, length := quotedPrefix(rest)
		if length == 0 {
			return all
		}
		all = append(all, text)
		rest = rest[length:]
	}
}

func TestSegmentsAreEveryTextAndBack(t *testing.T) {
	for what, name := range hostileNames {
		s := segment(name)
		assert.NotContains(t, []string{"", ".", ".."}, s, what)
		assert.NotContains(t, s, "/", what)
		got, err := unescapeSegment(s)
		require.NoError(t, err)
		assert.Equal(t, name, got, what)
	}
	_, err := unescapeSegment("%zz")
	assert.Error(t, err)
}
