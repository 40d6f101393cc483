// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/call/storedtree"
)

// partsOf returns the entries that have the calls of a window, each call once: those of an hour, or that of a day with the hours that it
// does not have.
func (t *trees) partsOf(w storedtree.Window) (parts []*entry) {
	if w.Length == storedtree.Hour {
		for _, e := range t.entries {
			if e.Window == w {
				parts = append(parts, e)
			}
		}
		return parts
	}
	sum := t.dayOf(w)
	if sum != nil {
		parts = append(parts, sum)
	}
	for _, e := range t.entries {
		if e.Window.Length == storedtree.Hour && storedtree.DayOf(e.Window.From()) == w && !e.isIn(sum) {
			parts = append(parts, e)
		}
	}
	return parts
}

// pathsOf is about the number of paths that are in memory while entries are added up. They are read one after the other, and have most
// of their paths in common.
func pathsOf(parts []*entry) int {
	const atOnce = 3
	sum, largest := 0, 0
	for _, e := range parts {
		sum += e.Paths
		largest = max(largest, e.Paths)
	}
	return min(sum, atOnce*largest)
}

// dayOf returns the entry of a day, or nil.
func (t *trees) dayOf(day storedtree.Window) *entry {
	for _, e := range t.entries {
		if e.Window == day {
			return e
		}
	}
	return nil
}

// isIn reports whether an hour is in the entry of its day, which may be nil.
func (e *entry) isIn(day *entry) bool { return day != nil && e.Part < day.Part }

// firstDay is the oldest day that is kept.
func (h *History) firstDay() storedtree.Window {
	return storedtree.DayOf(h.hour.From().AddDate(0, 0, -h.settings.Days))
}

// sumUpDays makes one tree of the hours of each ended day. A day with an entry of another version waits for a collector of that
// version.
func (h *History) sumUpDays(ctx context.Context) {
	type ended struct {
		t   *trees
		day storedtree.Window
	}
	var all []ended
	h.mu.Lock()
	first := h.firstDay()
	for _, t := range h.trees {
		for _, e := range t.entries {
			if e.Window.Length != storedtree.Hour {
				continue
			}
			day := storedtree.DayOf(e.Window.From())
			if day.To().After(h.hour.From()) || day.Start < first.Start || h.settings.Days == 0 || e.isIn(t.dayOf(day)) {
				continue
			}
			if next := (ended{t, day}); !slices.Contains(all, next) && !hasForeign(t.partsOf(day)) {
				all = append(all, next)
			}
		}
	}
	h.mu.Unlock()
	for _, of := range all {
		if err := h.sumUp(ctx, of.t, of.day); err != nil {
			if _, due := h.short.Count(h.settings.Now()); due {
				h.settings.Logger.Warn("The hours of a day cannot be summed up yet: the next save tries again", zap.Stringer("day", of.day), zap.Error(err))
			}
			return
		}
	}
}

func hasForeign(parts []*entry) bool {
	return slices.ContainsFunc(parts, func(e *entry) bool { return e.isForeign })
}

// sumUp makes one tree of the hours of a day. An hour that is damaged is missing in it.
func (h *History) sumUp(ctx context.Context, t *trees, day storedtree.Window) error {
	h.mu.Lock()
	parts, old := t.partsOf(day), t.dayOf(day)
	h.mu.Unlock()
	release, err := h.settings.Reserve(pathMemory * int64(pathsOf(parts)))
	if err != nil {
		return err
	}
	defer release()
	sum, err := h.sumOf(ctx, parts, calltree.Snapshot{})
	if err != nil && !errors.As(err, new(unreadable)) {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if hasForeign(parts) { // the sum has found it
		return nil
	}
	if err != nil { // nothing can be read
		sum = calltree.Snapshot{Service: parts[0].Service, Kind: parts[0].Kind, From: day.From(), To: day.To(), Remarks: []string{remarkOn(day, err)}}
	}
	h.put(t, nil, day, sum)
	if old != nil {
		h.remove(t, old)
	}
	return nil
}

// expire drops windows that are too old, and those beyond the bound of bytes.
func (h *History) expire() {
	h.mu.Lock()
	defer h.mu.Unlock()
	firstHour, firstDay := h.hour.From().Add(-time.Duration(h.settings.Hours)*time.Hour).Unix(), h.firstDay()
	for _, t := range h.trees {
		for _, e := range slices.Clone(t.entries) {
			day := storedtree.DayOf(e.Window.From())
			switch e.Window.Length {
			case storedtree.Hour:
				// An hour stays until its day has it.
				if e.Window.Start < firstHour && (h.settings.Days == 0 || day.Start < firstDay.Start || e.isIn(t.dayOf(day))) {
					h.remove(t, e)
				}
			case storedtree.Day:
				if day.Start < firstDay.Start {
					h.remove(t, e)
				}
			}
		}
	}
	h.limit()
}

// limit drops trees until the stored data is within its bound:
//
//  1. The largest live trees, until the others take at most half of the bound. Otherwise windows would go for a tree without room.
//  2. The oldest window of the service that takes most, then the next. Trees of the current hour and live trees go last.
func (h *History) limit() {
	total, live, services := int64(0), int64(0), map[string]int64{}
	var largest []place
	for key, t := range h.trees {
		for _, e := range t.entries {
			total += chargeOf(e)
			services[key.service] += chargeOf(e)
			if e.Window.Length == storedtree.Live {
				largest = append(largest, place{t, e})
				live += chargeOf(e)
			}
		}
	}
	slices.SortFunc(largest, func(a, b place) int { return cmp.Compare(b.e.Bytes, a.e.Bytes) })
	dropped := 0
	for ; live > h.settings.MaxBytes/2; dropped++ {
		t, e := largest[dropped].t, largest[dropped].e
		live -= chargeOf(e)
		total -= chargeOf(e)
		services[e.Service] -= chargeOf(e)
		h.remove(t, e)
	}
	for ; total > h.settings.MaxBytes; dropped++ {
		fullest, most := "", int64(-1)
		for name, bytes := range services {
			if bytes > most || bytes == most && name < fullest {
				fullest, most = name, bytes
			}
		}
		t, e := h.oldest(fullest)
		if e == nil {
			break
		}
		total -= chargeOf(e)
		services[fullest] -= chargeOf(e)
		h.remove(t, e)
	}
	if dropped == 0 {
		h.limited.Over()
		return
	}
	h.settings.Dropped(ReasonLimit, dropped)
	if _, due := h.limited.Count(h.settings.Now()); due {
		h.settings.Logger.Warn("Stored call trees reached history.max_mib: the oldest windows of the service with most data are dropped", zap.Int("trees", dropped))
	}
}

// oldest returns the entry of a service that is dropped first; nil: there is none.
func (h *History) oldest(service string) (of *trees, first *entry) {
	rank := func(t *trees, e *entry) int {
		switch {
		case e.Window.Length == storedtree.Live:
			return 2
		case e == t.hour:
			return 1
		}
		return 0
	}
	for key, t := range h.trees {
		if key.service != service {
			continue
		}
		for _, e := range t.entries {
			if first == nil || cmp.Or(
				cmp.Compare(rank(t, e), rank(of, first)), cmp.Compare(e.Window.Start, first.Window.Start), cmp.Compare(e.Part, first.Part),
			) < 0 {
				of, first = t, e
			}
		}
	}
	return of, first
}
