// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

// reset resets the trees of a service, or all trees if the form has no service.
func (h *Handler) reset(w http.ResponseWriter, r *http.Request) {
	if err := h.resetRequested(r); err != nil {
		h.answerError(w, r, err)
		return
	}
	redirect(".")(w, r)
}

func (h *Handler) resetRequested(r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return badRequestf("expected a form: %w", err)
	}
	if !r.PostForm.Has("service") {
		h.trees.ResetAll()
		return nil
	}
	service, err := unescapeSegment(r.PostForm.Get("service"))
	if err != nil {
		return err
	}
	if !h.trees.Reset(service) {
		return calltree.ErrNotThere
	}
	return nil
}
