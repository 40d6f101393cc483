// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

// versions are the trees of two versions of a shop. In the second one Cart.add takes twice as long, Price.of is called half
// as often, and Tax.of is new. Log.write is gone, and the rest is the same.
func versions() *played {
	p := playing("shop@2", "Cart.add")
	tree := func(version string, nodes ...calltree.Node) {
		s := calltree.Snapshot{Service: version, From: started, To: started.Add(1e10), Nodes: nodes}
		p.trees[treeKey{version, calltree.Calls}] = s
	}
	p.services = nil
	for _, name := range []string{"another", "shop@1", "shop@2"} {
		p.services = append(p.services, calltree.Service{Name: name, Kinds: []calltree.Kind{calltree.Calls}})
	}
	tree("another", calltree.Node{Parent: -1, Function: "f", Calls: 1, Total: 5, Self: 5})
	tree("shop@1",
		calltree.Node{Parent: -1, Function: "Main.main", Calls: 1, Total: 1_000_000, Self: 100_000},
		calltree.Node{Parent: 0, Function: "Cart.add", Calls: 10, Total: 500_000, Self: 100_000},
		calltree.Node{Parent: 1, Function: "Price.of", Calls: 400, Total: 400_000, Self: 400_000},
		calltree.Node{Parent: 0, Function: "Log.write", Calls: 4, Total: 400_000, Self: 400_000},
	)
	tree("shop@2",
		calltree.Node{Parent: -1, Function: "Main.main", Calls: 1, Total: 1_100_000, Self: 100_000},
		calltree.Node{Parent: 0, Function: "Cart.add", Calls: 10, Total: 1_000_000, Self: 700_000},
		calltree.Node{Parent: 1, Function: "Price.of", Calls: 200, Total: 200_000, Self: 200_000},
		calltree.Node{Parent: 1, Function: "Tax.of", Calls: 2, Total: 100_000, Self: 100_000},
	)
	return p
}

const bothVersions = "/compare?before=services/shop@1/&after=services/shop@2/"

// drawn are the frames of a picture: width in percent, class, and title.
type drawn struct{ width, class, title string }

var frameDrawn = regexp.MustCompile(`(?s)<svg x="[^"]*" y="\d+" width="([^"]*)%"[^>]*><title>(.*?)</title><rect class="([^"]*)"`)

// pictures returns the frames of each picture of a page, by the first lines of their titles.
func pictures(page string) []map[string]drawn {
	var all []map[string]drawn
	for _, svg := range strings.Split(page, `<svg class="flames"`)[1:] {
		frames := map[string]drawn{}
		for _, found := range frameDrawn.FindAllStringSubmatch(svg, -1) {
			name, rest, _ := strings.Cut(found[2], "\n")
			frames[name] = drawn{found[1], found[3], rest}
		}
		all = append(all, frames)
	}
	return all
}

func TestTwoTreesAreDrawnAsADifferenceAndBesideEachOther(t *testing.T) {
	all := pictures(page(t, serve(versions()), bothVersions))
	require.Len(t, all, 3)
	difference, before, after := all[0], all[1], all[2]
	for name, want := range map[string]drawn{
		"all":       {"100.000", "d0", ""},
		"Cart.add":  {"71.429", "d2", "calls 10 → 10 (=)\ntime 500µs → 1ms (+100.0%)\ntime of a call 50µs → 100µs (+100.0%)"},
		"Price.of":  {"28.571", "l2", "calls 400 → 200 (-50.0%)\ntime 400µs → 200µs (-50.0%)\ntime of a call 1µs → 1µs (=)"},
		"Log.write": {"19.048", "l5", "calls 4 → 0 (gone)\ntime 400µs → 0s (gone)"},
		"Tax.of":    {"4.762", "d5", "calls 0 → 2 (new)\ntime 0s → 100µs (new)"},
	} {
		assert.Equal(t, want, difference[name], name)
	}
	assert.Equal(t, "90.909", before["all"].width, "both have the same scale")
	assert.Equal(t, "100.000", after["all"].width)
	assert.Equal(t, "36.364", before["Log.write"].width)
	assert.NotContains(t, after, "Log.write")
	assert.NotContains(t, before, "Tax.of")
}

func TestWidthsAndColoursAreThoseOfTheMeasure(t *testing.T) {
	h := serve(versions())
	calls := pictures(page(t, h, bothVersions+"&by=calls"))[0]
	assert.Equal(t, "d0", calls["Cart.add"].class)
	assert.Equal(t, "l2", calls["Price.of"].class)
	assert.Equal(t, "95.541", calls["Price.of"].width)
	call := pictures(page(t, h, bothVersions+"&by=call"))[0]
	assert.Equal(t, "d2", call["Cart.add"].class)
	assert.Equal(t, "d0", call["Price.of"].class)
	assert.Equal(t, "dn", call["Tax.of"].class, "there is no call before")
	assert.Equal(t, "71.429", call["Cart.add"].width)
	// Before is scaled by 1.1, so that both are as wide.
	equal := pictures(page(t, h, bothVersions+"&scale=equal"))
	assert.Equal(t, "100.000", equal[1]["all"].width)
	assert.Equal(t, "calls 440 → 200 (-54.5%)\ntime 440µs → 200µs (-54.5%)\ntime of a call 1µs → 1µs (=)", equal[0]["Price.of"].title)
}

// rowOf are the cells of the list in a page, by function.
func rowsOf(t *testing.T, page string) (names []string, cells map[string]string) {
	cells = map[string]string{}
	for _, e := range elements(t, page) {
		if e.Data != "tr" {
			continue
		}
		var texts []string
		for cell := range e.ChildNodes() {
			if cell.Data == "td" {
				var b strings.Builder
				for node := range cell.Descendants() {
					if node.FirstChild == nil {
						b.WriteString(node.Data)
					}
				}
				texts = append(texts, b.String())
			}
		}
		if len(texts) == 10 {
			names = append(names, texts[9])
			cells[texts[9]] = strings.Join(texts[:9], " ")
		}
	}
	return names, cells
}

func TestTheFunctionsThatDifferMostAreFirst(t *testing.T) {
	h := serve(versions())
	names, cells := rowsOf(t, page(t, h, bothVersions))
	assert.Equal(t, []string{"Cart.add", "Log.write (only before)", "Price.of", "Tax.of (only after)"}, names)
	assert.Equal(t, "100µs 700µs +600.0% 10 10 = 50µs 100µs +100.0%", cells["Cart.add"])
	assert.Equal(t, "400µs 0s gone 4 0 gone 100µs – ", cells["Log.write (only before)"])
	names, _ = rowsOf(t, page(t, h, bothVersions+"&by=calls"))
	assert.Equal(t, []string{"Price.of", "Log.write (only before)", "Tax.of (only after)"}, names)
	names, _ = rowsOf(t, page(t, h, bothVersions+"&by=call"))
	assert.Equal(t, []string{"Cart.add", "Main.main"}, names)
	text := textOf(t, page(t, h, bothVersions))
	assert.Regexp(t, `calls\s*415\s*213\s*-48.7%`, strings.ReplaceAll(text, "\n", " "))
}

func TestAFrameIsALinkToThePathAlone(t *testing.T) {
	h := serve(versions())
	whole := page(t, h, bothVersions+"&scale=equal")
	var link string
	for _, e := range elements(t, whole) {
		if e.Data == "a" && strings.Contains(attribute(e, "href"), queryAt+"=") {
			text := ""
			for node := range e.Descendants() {
				text += node.Data
			}
			if strings.Contains(text, "Cart.add") {
				link = attribute(e, "href")
			}
		}
	}
	require.NotEmpty(t, link)
	alone := page(t, h, "/"+link)
	assert.Contains(t, textOf(t, alone), "Shown: Cart.add")
	frames := pictures(alone)[0]
	for _, name := range []string{"all", "Main.main", "Cart.add"} {
		assert.Equal(t, "100.000", frames[name].width, name)
	}
	assert.Contains(t, frames, "Tax.of")
	assert.NotContains(t, frames, "Log.write")
	assert.Contains(t, alone, `<option value="equal" selected>`, "the rest of the address stays")
	assert.Equal(t, http.StatusBadRequest, get(t, h, bothVersions+"&at=1234").Code)
}

func TestTheFormProposesTheTreeToCompareWith(t *testing.T) {
	p := versions()
	h := serve(p)
	proposed := func(after string) string {
		var before string
		for _, e := range elements(t, page(t, h, "/compare?after="+url.QueryEscape(after))) {
			for _, a := range e.Attr {
				if e.Data == "option" && a.Key == "selected" && attribute(e.Parent, "name") == queryBefore {
					before = attribute(e, "value")
				}
			}
		}
		return before
	}
	assert.Equal(t, "services/shop@1/", proposed("services/shop@2/"), "another version")
	assert.Empty(t, proposed("services/another/"))
	for range 2 {
		require.Equal(t, http.StatusSeeOther, post(h, "/windows", url.Values{"service": {"another"}, "seconds": {"5"}}, nil).Code)
	}
	assert.Equal(t, "windows/1/", proposed("windows/2/"), "an earlier window")
	assert.Equal(t, "windows/2/", proposed("services/another/"), "the latest window")
	assert.Contains(t, page(t, h, "/compare"), "Choose two trees")
}

func TestAddressesThatCannotBeComparedAreRefused(t *testing.T) {
	p := versions()
	kind := calltree.Kind{Type: "cpu", Unit: "samples"}
	p.trees[treeKey{"shop@1", kind}] = shop("shop@1", kind, "f")
	h := serve(p)
	for target, want := range map[string]int{
		"/compare?before=services/nobody/&after=services/shop@2/":                                           http.StatusNotFound,
		"/compare?before=windows/9/&after=services/shop@2/":                                                 http.StatusNotFound,
		"/compare?before=services/shop@1/profiles/cpu/samples/&after=services/shop@2":                       http.StatusBadRequest,
		"/compare?before=elsewhere&after=services/shop@2/":                                                  http.StatusBadRequest,
		"/compare?before=http://evil.example/&after=services/shop@2/":                                       http.StatusBadRequest,
		"/compare?before=windows/x/&after=services/shop@2/":                                                 http.StatusBadRequest,
		"/compare?before=services/%25zz/&after=services/shop@2/":                                            http.StatusBadRequest,
		bothVersions + "&by=size":                                                                           http.StatusBadRequest,
		bothVersions + "&scale=log":                                                                         http.StatusBadRequest,
		bothVersions + "&at=x":                                                                              http.StatusBadRequest,
		"/compare?before=services/shop@1/profiles/cpu/samples/&after=services/shop@1/profiles/cpu/samples/": http.StatusOK,
	} {
		assert.Equal(t, want, get(t, h, target).Code, target)
	}
}

func TestAnAddressOfATreeLeadsToIt(t *testing.T) {
	for _, name := range hostileNames {
		h := serve(playing(name, name))
		for _, want := range []tree{{service: name}, {service: name, kind: calltree.Kind{Type: name, Unit: name + "s"}}} {
			got, err := h.treeAt(want.address())
			require.NoError(t, err)
			assert.Equal(t, [2]any{want.service, want.kind}, [2]any{got.service, got.kind})
			_, ok := got.snapshot()
			assert.True(t, ok)
		}
	}
}

func TestAFormListsABoundedNumberOfTrees(t *testing.T) {
	p := versions()
	for i := range 2 * mostChoices {
		p.services = append(p.services, calltree.Service{Name: fmt.Sprint("s", i), Kinds: []calltree.Kind{calltree.Calls}})
	}
	h := serve(p)
	p.trees[treeKey{"last", calltree.Calls}] = shop("last", calltree.Calls, "f")
	made := page(t, h, "/compare?before=services/shop@1/&after=services/last/")
	assert.Contains(t, made, "There are more trees")
	assert.Contains(t, made, `<option value="services/last/" selected>`)
	assert.Less(t, strings.Count(made, "<option"), 2*mostChoices+20)
}

func TestThePicturesOfLargeTreesAreBounded(t *testing.T) {
	p := versions()
	p.trees[treeKey{"large", calltree.Calls}] = large(20_000)
	h := serve(p)
	made := page(t, h, "/compare?before=services/large/&after=services/shop@2/")
	for _, picture := range strings.Split(made, `<svg class="flames"`)[1:] {
		assert.LessOrEqual(t, strings.Count(picture, "<rect"), mostFrames+2)
	}
	assert.Less(t, len(made), 3<<20)
}

// equalStacks is a tree of stacks that are all different, deep and equally wide.
func equalStacks(service string, stacks, depth int) calltree.Snapshot {
	s := calltree.Snapshot{Service: service, From: started, To: started.Add(time.Second)}
	for i := range stacks {
		for d := range depth {
			n := calltree.Node{Parent: int32(len(s.Nodes)) - 1, Function: fmt.Sprintf("f%d_%d", i, d), Calls: 1, Total: 1}
			switch d {
			case 0:
				n.Parent = -1
			case depth - 1:
				n.Self = 1
			}
			s.Nodes = append(s.Nodes, n)
		}
	}
	return s
}

func TestThePicturesOfEquallyWidePathsAreBounded(t *testing.T) {
	for name, test := range map[string]struct {
		service string
		links   bool
		most    int
	}{
		"short names": {"many", true, 3 << 20},
		"long names":  {strings.Repeat("é", 300), false, 3 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			p := versions()
			before, after := test.service+"1", test.service+"2"
			p.trees[treeKey{before, calltree.Calls}] = equalStacks(before, 98, 100)
			p.trees[treeKey{after, calltree.Calls}] = equalStacks(after, 98, 100)
			query := url.Values{"before": {tree{service: before}.address()}, "after": {tree{service: after}.address()}}
			made := page(t, serve(p), "/compare?"+query.Encode())
			for _, picture := range strings.Split(made, `<svg class="flames"`)[1:] {
				assert.Equal(t, mostFrames+1, strings.Count(picture, "<rect"), "with the frame of all")
				assert.Contains(t, picture, "<title>f97_1\n", "the upper frames of all stacks")
			}
			assert.Less(t, len(made), test.most)
			assert.Equal(t, test.links, strings.Contains(made, "Click a frame to see it alone"))
			assert.Equal(t, !test.links, strings.Contains(made, "too long for links"))
		})
	}
}

func TestThePageOfATreeIsThereWithoutMemoryForAComparison(t *testing.T) {
	p := versions()
	p.trees[treeKey{"shop@1", calltree.Calls}] = equalStacks("shop@1", 100, 100)
	h := serve(p)
	assert.NotContains(t, page(t, h, "/services/shop@2/"), "Not compared")
	h.options.Reserve = func(bytes int64, _ func()) (func(), error) {
		if bytes > ofPaths(1000) {
			return nil, errors.New("no memory")
		}
		return func() {}, nil
	}
	made := page(t, h, "/services/shop@2/")
	assert.Contains(t, made, "Not compared: there is not enough memory for the other tree now.")
	assert.Contains(t, made, `href="../../compare?after=services%2fshop%402%2f"`)
}

func TestAFrameHasAMethodWithoutItsPackage(t *testing.T) {
	for name, want := range map[string]string{
		"com.example.Cart.add":             "Cart.add",
		"com.example.Cart.add (truncated)": "Cart.add (truncated)",
		"com.example.Cart.<init>":          "Cart.<init>",
		"Cart.add":                         "Cart.add",
		"main":                             "main",
		"":                                 "",
		"std::vector<a.b, c.d>::at":        "std::vector<a.b, c.d>::at",
		"(parent not seen)":                "(parent not seen)",
		"Shop::Cart#add":                   "Shop::Cart#add",
	} {
		assert.Equal(t, want, withoutPackage(name), name)
	}
}
