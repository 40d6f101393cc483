// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"encoding/hex"
	"io"
	"net/http"
	"strings"

	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/call/treeformat"
)

// traceFormats are the file formats of traces, by the end of the file's name. A longer end is before
// one that is a part of it.
var traceFormats = []struct {
	suffix string
	write  func(io.Writer, calltree.TraceID, []calltree.KeptSpan) error
}{
	{".speedscope.json", treeformat.WriteSpeedscopeTrace},
	{".json", treeformat.WriteChromeTrace},
}

// trace serves a trace in the format that the end of the name selects.
func (h *Handler) trace(w http.ResponseWriter, r *http.Request) {
	h.answerError(w, r, h.downloadTrace(w, r))
}

func (h *Handler) downloadTrace(w http.ResponseWriter, r *http.Request) error {
	file := r.PathValue("file")
	for _, format := range traceFormats {
		digits, ok := strings.CutSuffix(file, format.suffix)
		if !ok {
			continue
		}
		id, err := parseTraceID(digits)
		if err != nil {
			return err
		}
		return h.sendTrace(w, r, id, format.suffix, format.write)
	}
	return badRequestf("expected a trace ID and .json or .speedscope.json, got %.50q", file)
}

func (h *Handler) sendTrace(w http.ResponseWriter, r *http.Request, id calltree.TraceID, suffix string, write func(io.Writer, calltree.TraceID, []calltree.KeptSpan) error) error {
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
	w.Header().Set("Content-Disposition", `attachment; filename="trace-`+hex.EncodeToString(id[:])+suffix+`"`)
	_ = write(h.send(w, &turn), id, spans) // the client has gone, or reads too slowly
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
