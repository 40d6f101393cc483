// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"context"
	"net/http"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

// overview is the page of all services.
func (h *Handler) overview(w http.ResponseWriter, r *http.Request) {
	page, err := h.makeOverview(r.Context())
	if err == nil {
		err = h.whileSent(page.Len(), func() { writeHTML(w, r, page) })
	}
	h.answerError(w, r, err)
}

// makeOverview makes the page when it is its turn. It is sent afterwards.
func (h *Handler) makeOverview(ctx context.Context) (*bytes.Buffer, error) {
	turn := h.turn(h.starts)
	defer turn.end()
	if err := turn.wait(ctx); err != nil {
		return nil, err
	}
	if err := turn.hold(serviceMemory * int64(h.trees.Usage().Services)); err != nil {
		return nil, err
	}
	services := h.trees.Services()
	return made("overview.html", struct {
		Root     string
		Title    string
		Services []calltree.Service
		Earlier  []earlierService
		Notes    []string

		TraceFiles *traceFiles
	}{"./", "Services", services, h.earlierServices(services), append(notes(h.trees.Counters()), h.options.History.Notes()...), h.listTraceFiles("./")})
}
