// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/call/treeformat"
)

// traceSuffix is the end of the name of a trace's file, behind the trace ID.
const traceSuffix = ".speedscope.json"

// trace serves a trace.
func (h *Handler) trace(w http.ResponseWriter, r *http.Request) {
	h.answerError(w, r, h.downloadTrace(w, r))
}

func (h *Handler) downloadTrace(w http.ResponseWriter, r *http.Request) error {
	digits, ok := strings.CutSuffix(r.PathValue("file"), traceSuffix)
	if !ok {
		return badRequestf("expected a trace ID and %s, got %.50q", traceSuffix, r.PathValue("file"))
	}
	id, err := parseTraceID(digits)
	if err != nil {
		return err
	}
	turn := h.turn(h.downloads)
	defer turn.end()
	if err := turn.wait(r.Context()); err != nil {
		return err
	}
	if err := turn.hold(keptMemory * int64(h.trees.Usage().Kept)); err != nil {
		return err
	}
	spans, ok := h.trees.Trace(id)
	if !ok {
		return errNoTrace
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Disposition", `attachment; filename="trace-`+hex.EncodeToString(id[:])+traceSuffix+`"`)
	_ = treeformat.WriteSpeedscopeTrace(h.send(w, &turn), id, spans) // the client has gone, or reads too slowly
	return nil
}

func parseTraceID(digits string) (id calltree.TraceID, err error) {
	if hex.DecodedLen(len(digits)) != len(id) {
		return id, badRequestf("expected the 32 hexadecimal digits of a trace ID, got %.50q", digits)
	}
	if _, err := hex.Decode(id[:], []byte(digits)); err != nil {
		return id, badRequestf("expected the hexadecimal digits of a trace ID, got %.50q", digits)
	}
	return id, nil
}
