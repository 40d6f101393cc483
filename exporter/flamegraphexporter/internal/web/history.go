// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"slices"
	"time"

	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/call/storedtree"
)

// storedWindow is a window as forms show it: 2026-11-27 10:00 to 11:00 UTC.
func storedWindow(w storedtree.Window) string {
	if w.Length == storedtree.Day {
		return w.From().Format(time.DateOnly) + " UTC"
	}
	return w.From().Format("2006-01-02 15:04") + " to " + w.To().Format("15:04 MST")
}

// storedDay is a day with its hours, for the list of a page.
type storedDay struct {
	Day   storedLink
	Hours []storedLink
}

type storedLink struct {
	Text, Address string // Address is relative to the page of all services
	IsShown       bool   // on this page
}

// storedDays returns the stored windows of a tree, the latest first. Hours of a day are in their order.
func (h *Handler) storedDays(of tree) (days []storedDay) {
	for _, w := range h.options.History.Windows(of.service, of.kind) {
		link := storedLink{Address: h.storedAt(of.service, of.kind, w.String()).address(), IsShown: w == of.at}
		if w.Length == storedtree.Day {
			link.Text = w.From().Format(time.DateOnly)
			days = append(days, storedDay{Day: link})
			continue
		}
		link.Text = w.From().Format("15:04")
		last := &days[len(days)-1]
		last.Hours = slices.Insert(last.Hours, 0, link)
	}
	return days
}

// earlierService is a service without a tree, and the address of its latest window.
type earlierService struct{ Name, Address string }

// earlierServices returns services that only stored windows have.
func (h *Handler) earlierServices(known []calltree.Service) (all []earlierService) {
	names := map[string]bool{}
	for i := range known {
		names[known[i].Name] = true
	}
	for _, name := range h.options.History.Services() {
		if names[name] {
			continue
		}
		for _, kind := range h.options.History.Kinds(name) {
			if windows := h.options.History.Windows(name, kind); len(windows) > 0 {
				all = append(all, earlierService{name, h.storedAt(name, kind, windows[0].String()).address()})
				break
			}
		}
	}
	return all
}
