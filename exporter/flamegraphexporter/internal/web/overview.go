// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"

	"github.com/callbraid/callbraid/internal/calltree"
)

// overview is the page of all services.
func (h *Handler) overview(w http.ResponseWriter, r *http.Request) {
	h.answerError(w, r, render(w, "overview.html", struct {
		Root     string
		Title    string
		Services []calltree.Service
		Notes    []string
	}{"./", "Services", h.trees.Services(), notes(h.trees.Counters())}))
}
