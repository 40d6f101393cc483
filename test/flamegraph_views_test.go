// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/test/kit/browser"
)

// zoomsOutByBackspace shows a frame alone by keys, and then its caller, step by step.
func zoomsOutByBackspace(t *testing.T, b *browser.Browser) {
	b.Do(t, chromedp.Focus(chromedp.CSS("#chart")), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowDown))
	redraw(t, b, chromedp.KeyEvent(kb.Enter))
	callee := evaluate[string](t, b, `location.search`)
	assert.Contains(t, callee, "at=")
	redraw(t, b, chromedp.KeyEvent(kb.Backspace))
	caller := evaluate[string](t, b, `location.search`)
	assert.Contains(t, caller, "at=")
	assert.NotEqual(t, callee, caller)
	redraw(t, b, chromedp.KeyEvent(kb.Backspace))
	assert.NotContains(t, evaluate[string](t, b, `location.search`), "at=")
	assert.True(t, evaluate[bool](t, b, `document.getElementById('alone').hidden`))
}

// resizesThePicture makes the window narrower and wider while the picture is shown.
func resizesThePicture(t *testing.T, b *browser.Browser) {
	markPage(t, b)
	for _, resize := range []func(testing.TB){b.Phone, b.Desktop} {
		before := evaluate[float64](t, b, `document.getElementById('chart').clientWidth`)
		shown := evaluate[int](t, b, `Number(document.body.dataset.shown)`)
		resize(t)
		awaitScript(t, b, "the picture is drawn again", fmt.Sprintf(`Number(document.body.dataset.shown) > %d`, shown))
		width := evaluate[float64](t, b, `document.getElementById('chart').clientWidth`)
		assert.NotEqual(t, before, width)
		assert.InDelta(t, width, widthOf(t, b, "everything"), 2)
		requests := b.Requests()
		assert.Contains(t, requests[len(requests)-1], fmt.Sprintf("flamegraph.json?width=%.0f", width), "the server folds for the width")
		assert.Empty(t, evaluate[string](t, b, tooWide))
	}
	assertNotReloaded(t, b)
}

// topRows are the rows of pprof's list of functions: flat value, cumulative value, and name.
func topRows(t *testing.T, b *browser.Browser) []string {
	t.Helper()
	return evaluate[[]string](t, b, `Array.from(document.querySelectorAll('#rows tr'), e => [0, 3, 5].map(i => e.children[i].innerText.replace('com.example.shop.', '')).join(' '))`)
}

// choose follows a link in a menu of pprof.
func choose(t *testing.T, b *browser.Browser, menu, link string) {
	t.Helper()
	b.Do(t, chromedp.Click(chromedp.CSS(menu+" .menu-name")))
	require.True(t, evaluate[bool](t, b, fmt.Sprintf(`document.querySelector(%q).offsetHeight > 0`, link)), "the menu is open")
	b.Leave(t, chromedp.Click(chromedp.CSS(link)))
}

// queryOf returns a parameter of the page's address.
func queryOf(t *testing.T, b *browser.Browser, name string) string {
	t.Helper()
	address, err := url.Parse(evaluate[string](t, b, `document.URL`))
	require.NoError(t, err)
	return address.Query().Get(name)
}

// sortsAndRefinesTop sorts the list of functions, lists another value, and leaves a function out.
func sortsAndRefinesTop(t *testing.T, b *browser.Browser, site string) {
	b.Open(t, site+"/services/shop@1.2/ui/top?si=time")
	const reserve, list, order = "40ms 40ms Stock.reserve", "30ms 30ms Cart.list", "20ms 90ms Checkout.order"
	assert.Equal(t, []string{reserve, list, order}, topRows(t, b), "the largest first")
	for _, sorted := range []struct {
		by   string
		want []string
	}{
		{"#flathdr1", []string{order, list, reserve}},
		{"#cumhdr1", []string{order, reserve, list}},
		{"#cumhdr2", []string{list, reserve, order}},
		{"#namehdr", []string{list, order, reserve}},
		{"#namehdr", []string{reserve, order, list}},
		{"#flathdr2", []string{reserve, list, order}},
	} {
		b.Do(t, chromedp.Click(chromedp.CSS(sorted.by)))
		assert.Equal(t, sorted.want, topRows(t, b), sorted.by)
	}

	b.Do(t, chromedp.Click(chromedp.CSS("#rows tr td:nth-child(6)")))
	assert.Equal(t, "com.example.shop.Stock.reserve", evaluate[string](t, b, `document.querySelector('#rows tr.hilite').children[5].innerText`))
	choose(t, b, "#refine", "#hide")
	assert.Equal(t, `^com\.example\.shop\.Stock\.reserve$`, queryOf(t, b, "h"))
	assert.Equal(t, []string{"60ms 90ms Checkout.order", list}, topRows(t, b), "its caller has its time")
	assert.False(t, evaluate[bool](t, b, `document.getElementById('detailsbox').offsetHeight > 0`))
	b.Do(t, chromedp.Click(chromedp.CSS("#details")))
	assert.Contains(t, textOf(t, b, "#detailsbox"), "Hide: ^com")
	b.Screenshot(t, "top-hide")

	choose(t, b, "#sample", "#sampletype-calls")
	assert.Equal(t, "calls", queryOf(t, b, "si"))
	assert.NotEmpty(t, queryOf(t, b, "h"), "it stays")
	assert.Equal(t, []string{"20 30 Checkout.order", "10 10 Cart.list"}, topRows(t, b))
	choose(t, b, "#refine", "#refine .submenu a:last-child")
	assert.Empty(t, queryOf(t, b, "h"))
	assert.Len(t, topRows(t, b), 3)

	b.Open(t, site+"/services/shop@1.2/ui/top?h=.*")
	assert.Empty(t, topRows(t, b), "all are hidden")
	choose(t, b, "#refine", "#refine .submenu a:last-child")
	assert.Len(t, topRows(t, b), 3, "the menu still works")
}

// searchesInPeek goes from the list to callers and callees, and searches there.
func searchesInPeek(t *testing.T, b *browser.Browser, site string) {
	b.Open(t, site+"/services/shop@1.2/ui/top")
	choose(t, b, "#view", "#peek")
	for _, function := range []string{"Checkout.order", "Stock.reserve", "Cart.list"} {
		assert.Contains(t, textOf(t, b, "#content"), function)
	}
	b.Do(t, chromedp.Focus(chromedp.CSS("#search")), chromedp.KeyEvent("Stock"))
	b.Leave(t, chromedp.KeyEvent(kb.Enter))
	assert.Equal(t, "Stock", queryOf(t, b, "f"))
	content := textOf(t, b, "#content")
	assert.Contains(t, content, "Stock.reserve")
	assert.Contains(t, content, "Checkout.order", "its caller")
	assert.NotContains(t, content, "Cart.list")
	assert.Regexp(t, `(?m)^\s*40ms .*Stock\.reserve`, content)
	choose(t, b, "#sample", "#sampletype-calls")
	assert.Equal(t, "Stock", queryOf(t, b, "f"))
	assert.Regexp(t, `(?m)^\s*10 .*Stock\.reserve`, textOf(t, b, "#content"))
	b.Screenshot(t, "peek")
	fitAPhoneInTheDark(t, b, site)
}

// fitAPhoneInTheDark looks at pprof's lists on a phone with dark colours.
func fitAPhoneInTheDark(t *testing.T, b *browser.Browser, site string) {
	b.Phone(t)
	defer b.Desktop(t)
	b.Prefer(t, "dark")
	defer b.Prefer(t, "light")
	for _, list := range []string{"top", "peek"} {
		b.Open(t, site+"/services/shop@1.2/ui/"+list)
		assert.Empty(t, evaluate[string](t, b, tooWide), "nothing of %s is wider than a phone", list)
		assert.EqualValues(t, browser.PhoneWidth, evaluate[int](t, b, `document.documentElement.clientWidth`), list)
		assert.True(t, evaluate[bool](t, b, `document.getElementById('search').offsetWidth > 200`), "the search of %s is there", list)
		assert.Equal(t, "rgb(28, 28, 28)", evaluate[string](t, b, `getComputedStyle(document.body).backgroundColor`), list)
		b.Screenshot(t, list+"-phone-dark")
	}
	choose(t, b, "#view", "#topbtn")
	assert.Len(t, topRows(t, b), 3)
}

// showsViewsInSpeedscope shows a trace in the order of time, in which functions are called by turns, and sorted by size, where the
// calls of each are one frame. The script notes all texts that speedscope draws in its canvas, with their places.
func showsViewsInSpeedscope(t *testing.T, b *browser.Browser, site string) {
	b.Open(t, site+"/services/clock/")
	b.Leave(t, chromedp.Click(chromedp.CSS(`td a[href*="speedscope/"]`)))
	awaitProfile(t, b)
	b.Do(t, chromedp.Evaluate[chromedp.Void](`{
		window.texts = [];
		const draw = CanvasRenderingContext2D.prototype.fillText;
		CanvasRenderingContext2D.prototype.fillText = function (text, x, ...rest) {
			texts.push([text, Math.round(x)]);
			return draw.call(this, text, x, ...rest);
		};
	}`))
	// framesOf are the different places of a function's frames.
	framesOf := func(function string) string {
		return fmt.Sprintf(`new Set(texts.filter(([text]) => text.startsWith(%q)).map(([, x]) => x)).size`, function)
	}
	for _, view := range []struct {
		name   string
		frames int
	}{{"Left Heavy", 1}, {"Time Order", 2}} {
		b.Do(t, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(
			`texts.length = 0; Array.from(document.querySelectorAll('div')).findLast(e => e.innerText.endsWith(%q) && e.children.length <= 1).click()`, view.name)))
		awaitScript(t, b, view.name+" is drawn", framesOf("Clock.")+` > 0 && `+framesOf("Tock.")+` > 0`)
		assert.Equal(t, 1, evaluate[int](t, b, framesOf("Clock.")), view.name)
		for _, function := range []string{"Tick.", "Tock."} {
			assert.Equal(t, view.frames, evaluate[int](t, b, framesOf(function)), "%s in %s", function, view.name)
		}
		b.Screenshot(t, "speedscope-"+strings.ToLower(strings.ReplaceAll(view.name, " ", "-")))
	}
}
