// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/exporter/flamegraphexporter/internal/history"
	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/call/storedtree"
)

// stored are windows of trees, two hours and the day of each, and the day before.
type stored struct {
	trees map[treeKey]calltree.Snapshot
	notes []string
	// failure is the error of all trees; nil: they are there.
	failure error
	// few: calls have only one hour and its day, and profiles a day, so that following all links takes less time.
	few bool
}

func serveStored(p *played) *Handler { return serveWith(p, &stored{trees: p.trees}) }

func serveWith(p *played, s *stored) *Handler {
	return New(p, Options{Logger: zap.NewNop(), MaxKeptWindows: keptWindows, MaxKeptWindowNodes: keptWindowNodes, History: s})
}

func (s *stored) Services() (all []string) {
	for key := range s.trees {
		if !slices.Contains(all, key.service) {
			all = append(all, key.service)
		}
	}
	slices.Sort(all)
	return all
}

func (s *stored) Kinds(service string) (kinds []calltree.Kind) {
	for key := range s.trees {
		if key.service == service {
			kinds = append(kinds, key.kind)
		}
	}
	return kinds
}

func (s *stored) Windows(service string, kind calltree.Kind) []storedtree.Window {
	if _, ok := s.trees[treeKey{service, kind}]; !ok {
		return nil
	}
	if s.few {
		if kind == calltree.Calls {
			return []storedtree.Window{storedtree.DayOf(started), storedtree.HourOf(started)}
		}
		return []storedtree.Window{storedtree.DayOf(started.AddDate(0, 0, -1))}
	}
	return []storedtree.Window{
		storedtree.DayOf(started), storedtree.HourOf(started.Add(time.Hour)), storedtree.HourOf(started), storedtree.DayOf(started.AddDate(0, 0, -1)),
	}
}

func (s *stored) Paths(service string, kind calltree.Kind, _ storedtree.Window) int {
	return len(s.trees[treeKey{service, kind}].Nodes)
}

func (s *stored) Notes() []string { return s.notes }

func (s *stored) Tree(_ context.Context, service string, kind calltree.Kind, w storedtree.Window) (calltree.Snapshot, error) {
	tree, ok := s.trees[treeKey{service, kind}]
	switch {
	case s.failure != nil:
		return tree, s.failure
	case !ok || !slices.Contains(s.Windows(service, kind), w):
		return tree, fmt.Errorf("%w: %s", history.ErrNotStored, w)
	}
	tree.From, tree.To = w.From(), w.To()
	tree.Remarks = []string{"The collector <b>ended</b>."}
	return tree, nil
}

func TestAStoredHourHasAnAddress(t *testing.T) {
	h := serveStored(playing("shop", "Cart.add"))
	text := textOf(t, page(t, h, "/services/shop/at/2026-11-22T06Z/"))
	for _, want := range []string{
		"2026-11-22 06:00 to 07:00 UTC: 5 call paths, from 2026-11-22 06:00:00 UTC to 2026-11-22 07:00:00 UTC.", "The collector <b>ended</b>.",
		"Cart.add", "2026-11-22 06:00 07:00", "2026-11-21",
	} {
		assert.Contains(t, text, want)
	}
	assert.NotContains(t, text, "Reset this service")
	assert.NotContains(t, text, "Latest traces")
	text = textOf(t, page(t, h, "/services/shop/at/2026-11-22Z/"))
	assert.Contains(t, text, "2026-11-22 UTC: 5 call paths, from 2026-11-22 00:00:00 UTC to 2026-11-23 00:00:00 UTC.")
	assert.Equal(t, "Main.main 100000\n", strings.SplitAfter(page(t, h, "/services/shop/at/2026-11-22T06Z/profile.folded"), "\n")[0])
	assert.Contains(t, page(t, h, "/services/shop/at/2026-11-22T06Z/ui/flamegraph"), "Cart.add")
}

func TestThePageOfAServiceListsItsHoursAndDays(t *testing.T) {
	made := page(t, serveStored(playing("shop", "Cart.add")), "/services/shop/")
	assert.Contains(t, textOf(t, made), "Hours and days")
	for _, want := range []string{
		`href="../../services/shop/at/2026-11-22T06Z/">06:00</a>`, `href="../../services/shop/at/2026-11-22Z/">2026-11-22</a>`,
		`href="../../services/shop/at/2026-11-21Z/">2026-11-21</a>`,
	} {
		assert.Contains(t, made, want)
	}
	assert.NotContains(t, page(t, serve(playing("shop", "Cart.add")), "/services/shop/"), "Hours and days")
}

func TestStoredWindowsAreCompared(t *testing.T) {
	h := serveStored(playing("shop", "Cart.add"))
	made := page(t, h, "/compare?before=services/shop/at/2026-11-21Z/&after=services/shop/at/2026-11-22T06Z/")
	text := textOf(t, made)
	assert.Contains(t, text, "shop, 2026-11-21 UTC and shop, 2026-11-22 06:00 to 07:00 UTC")
	assert.Contains(t, made, `<option value="services/shop/at/2026-11-22T06Z/" selected>shop, 2026-11-22 06:00 to 07:00 UTC</option>`)
	const profile = "services/shop/profiles/Cart.add/Cart.adds/"
	made = page(t, h, "/compare?before="+profile+"&after="+profile+"at/2026-11-22T07Z/")
	assert.Contains(t, textOf(t, made), "shop, Cart.add, 2026-11-22 07:00 to 08:00 UTC")
	made = page(t, h, "/compare?after=services/shop/at/2026-11-22T06Z/")
	assert.Contains(t, made, `<option value="services/shop/" selected>`, "proposed: all of its calls")
}

func TestServicesWithStoredWindowsOnlyAreListed(t *testing.T) {
	p, s := playing("shop", "f"), &stored{trees: map[treeKey]calltree.Snapshot{{"gone & <far>", calltree.Calls}: shop("gone & <far>", calltree.Calls, "f")}}
	made := page(t, serveWith(p, s), "/")
	assert.Contains(t, made, `href="services/gone%20&amp;%20%3Cfar%3E/at/2026-11-22Z/">gone &amp; &lt;far&gt;</a>`)
	assert.Contains(t, textOf(t, page(t, serveWith(p, s), "/services/gone%20&%20%3Cfar%3E/at/2026-11-22Z/")), "gone & <far>")
	made = page(t, serveWith(&played{}, s), "/")
	assert.Contains(t, textOf(t, made), "Earlier services")
	assert.NotContains(t, page(t, serveStored(p), "/"), "Earlier services")
}

func TestThePageOfAllServicesHasTheNotesOfTheHistory(t *testing.T) {
	s := &stored{notes: []string{"Call trees cannot be stored: <full>."}}
	for _, p := range []*played{playing("shop", "f"), {}} {
		assert.Contains(t, textOf(t, page(t, serveWith(p, s), "/")), "Call trees cannot be stored: <full>.")
	}
}

func TestWindowsThatCannotBeShownAreErrors(t *testing.T) {
	p := playing("shop", "f")
	s := &stored{trees: p.trees}
	h := serveWith(p, s)
	for target, want := range map[string]string{
		"/services/shop/at/2026-11-20T06Z/":                                       "404: no calls of that window are stored: 2026-11-20T06Z",
		"/services/nobody/at/2026-11-22T06Z/":                                     "404: no calls of that window are stored: 2026-11-22T06Z",
		"/services/shop/at/yesterday/":                                            "400: expected an hour in UTC such as 2026-11-27T10Z, or a day such as 2026-11-27Z, got \"yesterday\"",
		"/services/shop/at/2026-11-22/":                                           "400: expected an hour in UTC",
		"/services/shop/at/2026-11-22T06Z/ui/top":                                 "200: ",
		"/services/shop/at/2026-11-22T06Z/profile.folded?seconds=3":               "400: seconds: a collected window has a fixed length",
		"/compare?before=services/shop/at/x/&after=services/shop/":                "400: ",
		"/compare?before=services/shop/at/2026-11-20Z/&after=services/shop/":      "404: services/shop/at/2026-11-20Z/: no calls of that window",
		"/compare?before=services/shop/at/2026-11-22Z/more/&after=services/shop/": "400: expected the address of a tree",
	} {
		w := get(t, h, target)
		assert.True(t, strings.HasPrefix(fmt.Sprint(w.Code, ": ", w.Body), want), "%s: got %d %.200s", target, w.Code, w.Body)
	}
	s.failure = fmt.Errorf("%w: 2026-11-22T06Z: %w", history.ErrUnreadable, errors.New("expected the checksum 1, got 2"))
	w := get(t, h, "/services/shop/at/2026-11-22T06Z/")
	assert.Equal(t, http.StatusInternalServerError, w.Code)
	assert.Equal(t, "the window cannot be read: 2026-11-22T06Z: expected the checksum 1, got 2\n", w.Body.String())
	w = get(t, serve(p), "/services/shop/at/2026-11-22T06Z/")
	assert.Equal(t, http.StatusNotFound, w.Code)
	assert.Equal(t, "no calls of that window are stored: the setting storage of the exporter is not set\n", w.Body.String())
}

func TestAnAddressOfAStoredWindowLeadsToIt(t *testing.T) {
	for _, name := range hostileNames {
		h := serveStored(playing(name, name))
		for _, kind := range []calltree.Kind{calltree.Calls, {Type: name, Unit: name + "s"}} {
			want := h.storedAt(name, kind, "2026-11-22T06Z")
			got, err := h.treeAt(want.address())
			require.NoError(t, err)
			assert.Equal(t, [3]any{want.service, want.kind, want.at}, [3]any{got.service, got.kind, got.at})
			s, err := got.now(t.Context())
			require.NoError(t, err)
			assert.Equal(t, name, s.Service)
		}
	}
}
