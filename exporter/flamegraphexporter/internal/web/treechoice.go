// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

// treeAt returns the tree of an address as [tree.address] makes it, or an error for the client.
func (h *Handler) treeAt(address string) (tree, error) {
	parts := strings.Split(strings.Trim(address, "/"), "/")
	for i, part := range parts {
		text, err := url.PathUnescape(part)
		if err != nil {
			return tree{}, badRequestf("expected the address of a tree, such as services/shop/, got %.200q: %w", address, err)
		}
		parts[i] = unsegment(text)
	}
	switch {
	case len(parts) == 2 && parts[0] == "services":
		return h.live(parts[1], calltree.Calls), nil
	case len(parts) == 5 && parts[0] == "services" && parts[2] == "profiles":
		return h.live(parts[1], calltree.Kind{Type: parts[3], Unit: parts[4]}), nil
	case len(parts) == 4 && parts[0] == "services" && parts[2] == "at":
		return h.storedAt(parts[1], calltree.Calls, parts[3]), nil
	case len(parts) == 7 && parts[0] == "services" && parts[2] == "profiles" && parts[5] == "at":
		return h.storedAt(parts[1], calltree.Kind{Type: parts[3], Unit: parts[4]}, parts[6]), nil
	case len(parts) == 2 && parts[0] == "windows":
		number, err := strconv.ParseUint(parts[1], 10, 64)
		if err != nil {
			return tree{}, badRequestf("expected the number of a window, got %.50q", parts[1])
		}
		return h.window(number), nil
	}
	return tree{}, badRequestf("expected the address of a tree, such as services/shop/ or windows/3/, got %.200q", address)
}

// mostChoices is the number of trees that a form lists.
const mostChoices = 300

// choice is a tree that a form offers.
type choice struct {
	Address string
	Label   string
	service string
	kind    calltree.Kind
}

// choices returns the trees that forms offer: kept windows, the latest first, then services, then stored windows. More reports whether there
// are others.
func (h *Handler) choices() (all []choice, more bool) {
	for _, w := range h.windows.all() {
		s := &w.snapshot
		label := fmt.Sprintf("window %d of %s: %s from %s", w.number, ofKind(s.Service, s.Kind), shownLength(s.To.Sub(s.From)), s.From.Format(time.TimeOnly))
		all = append(all, choice{tree{window: w.number}.address(), label, s.Service, s.Kind})
	}
	for _, service := range h.trees.Services() {
		for _, kind := range service.Kinds {
			all = append(all, choice{tree{service: service.Name, kind: kind}.address(), ofKind(service.Name, kind), service.Name, kind})
		}
	}
	for _, service := range h.options.History.Services() {
		for _, kind := range h.options.History.Kinds(service) {
			for _, w := range h.options.History.Windows(service, kind) {
				if len(all) > mostChoices {
					break
				}
				all = append(all, choice{h.storedAt(service, kind, w.String()).address(), ofKind(service, kind) + ", " + storedWindow(w), service, kind})
			}
		}
	}
	if len(all) > mostChoices {
		return all[:mostChoices], true
	}
	return all, false
}

// ofKind names a tree.
func ofKind(service string, kind calltree.Kind) string {
	if kind == calltree.Calls {
		return shownName(service)
	}
	return shownName(service) + ", " + shownName(kind.Type)
}

// counterpart returns the address of the tree that a person probably compares with this one, or nothing: another
// version of the service, an earlier window of it, or all of its calls.
func counterpart(of tree, all []choice) string {
	for _, fits := range []func(*choice) bool{
		func(c *choice) bool { return !of.isWindow() && isVersionOf(c.service, of.service) },
		func(c *choice) bool { return c.service == of.service },
	} {
		for i := range all {
			if c := &all[i]; c.kind == of.kind && c.Address != of.address() && fits(c) {
				return c.Address
			}
		}
	}
	return ""
}

// VersionMark is between the name of a service and its version, if versions have trees of their own.
const VersionMark = "@"

// isVersionOf reports whether two names are different versions of one service.
func isVersionOf(a, b string) bool {
	nameA, _, okA := strings.Cut(a, VersionMark)
	nameB, _, okB := strings.Cut(b, VersionMark)
	return okA && okB && nameA == nameB && a != b
}
