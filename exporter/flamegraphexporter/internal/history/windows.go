// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/call/storedtree"
)

// Errors of [History.Tree].
var (
	// ErrNotStored: there is no tree of that window.
	ErrNotStored = errors.New("no calls of that window are stored")
	// ErrUnreadable: there is one, and it cannot be read.
	ErrUnreadable = errors.New("the window cannot be read")
)

// Windows returns the windows of a service and kind, the latest first. A day stands before its hours.
func (h *History) Windows(service string, kind calltree.Kind) []storedtree.Window {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := map[storedtree.Window]bool{}
	if t := h.trees[treeKey{service, kind}]; t != nil {
		for _, e := range t.entries {
			if e.Window.Length != storedtree.Live {
				all[e.Window], all[storedtree.DayOf(e.Window.From())] = true, true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b storedtree.Window) int {
		return cmp.Or(
			cmp.Compare(storedtree.DayOf(b.From()).Start, storedtree.DayOf(a.From()).Start),
			cmp.Compare(b.Length, a.Length), cmp.Compare(b.Start, a.Start),
		)
	})
}

// Services returns the services with windows, sorted by name.
func (h *History) Services() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := map[string]bool{}
	for key, t := range h.trees {
		if slices.ContainsFunc(t.entries, func(e *entry) bool { return e.Window.Length != storedtree.Live }) {
			all[key.service] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// Kinds returns the kinds of a service with windows: calls first.
func (h *History) Kinds(service string) (kinds []calltree.Kind) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, t := range h.trees {
		if key.service == service && len(t.entries) > 0 {
			kinds = append(kinds, key.kind)
		}
	}
	slices.SortFunc(kinds, func(a, b calltree.Kind) int { return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Unit, b.Unit)) })
	return kinds
}

// Notes are sentences about stored trees that are not shown, or not stored.
func (h *History) Notes() (notes []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failure != nil {
		notes = append(notes, fmt.Sprintf("Call trees cannot be stored: %s. After a restart, those since the last save are missing.", h.failure))
	}
	foreign, unread := h.unlisted, 0
	for _, t := range h.trees {
		for _, e := range t.entries {
			switch {
			case e.isForeign:
				foreign++
			case e.isUnread:
				unread++
			}
		}
	}
	if foreign > 0 {
		notes = append(notes, fmt.Sprintf("Call trees that another version of the collector stored, and that this one cannot show: %d.", foreign))
	}
	if unread > 0 {
		notes = append(notes, fmt.Sprintf("Call trees that the storage did not return at the start, and that are not shown: %d. The next start reads them once more.", unread))
	}
	return notes
}

// Paths is about the number of paths that are in memory while a window is added up.
func (h *History) Paths(service string, kind calltree.Kind, w storedtree.Window) (paths int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.trees[treeKey{service, kind}]; t != nil {
		paths = pathsOf(t.partsOf(w))
	}
	if h.isCurrent(w) {
		paths += h.store.Paths(service, kind)
	}
	return paths
}

// isCurrent reports whether the current hour is in the window.
func (h *History) isCurrent(w storedtree.Window) bool {
	return w == h.hour || w == storedtree.DayOf(h.hour.From())
}

// Tree returns the tree of a window. That of the current hour or day has all calls until now.
func (h *History) Tree(ctx context.Context, service string, kind calltree.Kind, w storedtree.Window) (calltree.Snapshot, error) {
	parts, growth := h.partsNow(service, kind, w)
	if len(parts) == 0 && len(growth.Nodes) == 0 {
		return calltree.Snapshot{}, fmt.Errorf("%w: %s", ErrNotStored, w)
	}
	s, err := h.sumOf(ctx, parts, growth)
	switch {
	case errors.As(err, new(unreadable)):
		return s, fmt.Errorf("%w: %s: %w", ErrUnreadable, w, err)
	case err != nil:
		return s, fmt.Errorf("%w: %s: the storage failed: %w", ErrUnreadable, w, err)
	}
	s.Service, s.Kind, s.From, s.To = service, kind, w.From(), earliest(w.To(), h.settings.Now().UTC())
	for _, at := range h.interruptions(w) {
		s.Remarks = append(s.Remarks, fmt.Sprintf("The collector ended without its last save: calls that arrived after %s are missing until it was started again.",
			at.UTC().Format("2006-01-02 15:04:05 MST")))
	}
	return s, nil
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// partsNow returns copies of the entries of a window, and the growth of the tree since those were saved. They belong to one
// moment.
func (h *History) partsNow(service string, kind calltree.Kind, w storedtree.Window) (parts []*entry, growth calltree.Snapshot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.trees[treeKey{service, kind}]
	var current *entry
	if h.isCurrent(w) {
		if g, ok := h.store.Growth(service, kind, false); ok {
			growth = g.Snapshot
			if t != nil && t.number == g.Number {
				current = t.hour
			}
		}
	}
	if t == nil {
		return nil, growth
	}
	for _, e := range t.partsOf(w) {
		if e != current {
			copied := *e
			parts = append(parts, &copied)
		}
	}
	return parts, growth
}

// interruptions are the last saves of collectors that ended otherwise, if they are in the window or just before it.
func (h *History) interruptions(w storedtree.Window) (times []time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, at := range h.interrupted {
		if at.Before(w.To()) && at.Add(h.settings.Interval).After(w.From()) {
			times = append(times, at)
		}
	}
	return times
}

// sumOf adds up entries and further calls. It leaves out those that cannot be read, with a remark, and fails if there is nothing else.
func (h *History) sumOf(ctx context.Context, parts []*entry, further calltree.Snapshot) (calltree.Snapshot, error) {
	sum := calltree.NewSum(h.settings.MaxPaths)
	var failed error
	added := 0
	var remarks []string
	for _, e := range parts {
		stored, err := h.load(ctx, e)
		switch {
		case err == nil:
			sum.Add(stored.Snapshot)
			added++
		case errors.As(err, new(unreadable)):
			h.noteUnreadable(e, err)
			failed = err
			remarks = append(remarks, remarkOn(e.Window, err))
		default:
			return calltree.Snapshot{}, err
		}
	}
	if len(further.Nodes) > 0 {
		sum.Add(further)
		added++
	}
	if added == 0 && failed != nil {
		return calltree.Snapshot{}, failed
	}
	s := sum.Snapshot()
	for _, remark := range remarks {
		if !slices.Contains(s.Remarks, remark) {
			s.Remarks = append(s.Remarks, remark)
		}
	}
	return s, nil
}

// remarkOn is a remark on a part of a window that cannot be read.
func remarkOn(w storedtree.Window, err error) string {
	return fmt.Sprintf("A stored part of %s cannot be read, and its calls are missing: %s.", w, err)
}

// noteUnreadable logs an entry that cannot be read, once, and counts it if it is damaged.
func (h *History) noteUnreadable(e *entry, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.trees[treeKey{e.Service, e.Kind}]
	if t == nil {
		return
	}
	for _, own := range t.entries {
		if own.Part == e.Part && !own.isKnown {
			own.isKnown = true
			if own.isForeign = errors.As(err, new(storedtree.VersionError)); own.isForeign {
				h.logForeign(1, err)
				return
			}
			h.settings.Dropped(ReasonUnreadable, 1)
			h.settings.Logger.Warn("A stored window of a call tree cannot be read", zap.String("service", e.Service), zap.Stringer("window", e.Window), zap.Error(err))
		}
	}
}
