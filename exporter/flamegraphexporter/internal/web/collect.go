// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

// mostSeconds is how long a window can be.
const mostSeconds = 600

// parseSeconds reads how long a window shall be.
func parseSeconds(text string) (time.Duration, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > mostSeconds {
		return 0, badRequestf("seconds: expected a whole number from 1 to %d, got %.20q", mostSeconds, text)
	}
	return time.Duration(n) * time.Second, nil
}

// collect answers a request with a window of a service, when its turn has come.
func (h *Handler) collect(w http.ResponseWriter, r *http.Request, service string, kind calltree.Kind, d time.Duration, turn *turn) (calltree.Snapshot, error) {
	if h.options.WriteTimeout > 0 {
		// The server's time begins with the request; writing begins when the window ends.
		deadline := time.Now().Add(d + h.options.WriteTimeout)
		if err := http.NewResponseController(w).SetWriteDeadline(deadline); err != nil {
			return calltree.Snapshot{}, fmt.Errorf("delay the response by %v: %w", d, err)
		}
	}
	return h.trees.Collect(r.Context(), service, kind, d, func(ctx context.Context) error {
		if err := turn.wait(ctx); err != nil {
			return err
		}
		return turn.hold(ofPaths(h.trees.Paths(service, kind)))
	})
}

// collectWindow collects a window, and leads to it.
func (h *Handler) collectWindow(w http.ResponseWriter, r *http.Request) {
	number, err := h.newWindow(w, r)
	if err != nil {
		h.answerError(w, r, err)
		return
	}
	redirect(fmt.Sprintf("windows/%d/", number))(w, r)
}

func (h *Handler) newWindow(w http.ResponseWriter, r *http.Request) (uint64, error) {
	if err := r.ParseForm(); err != nil {
		return 0, badRequestf("expected a form: %w", err)
	}
	d, err := parseSeconds(r.PostForm.Get("seconds"))
	if err != nil {
		return 0, err
	}
	service, err := unescapeSegment(r.PostForm.Get("service"))
	if err != nil {
		return 0, err
	}
	kind, err := formKind(r.PostForm)
	if err != nil {
		return 0, err
	}
	turn := h.turn(h.pages)
	defer turn.end()
	s, err := h.collect(w, r, service, kind, d, &turn)
	if err != nil {
		return 0, err
	}
	number, dropped := h.windows.keep(s, h.options.MaxKeptWindows, h.options.MaxKeptWindowNodes)
	h.droppedWindows.Add(int64(dropped))
	if h.options.Kept != nil {
		h.options.Kept()
	}
	return number, nil
}

// formKind is the kind that a form has: calls where it has none.
func formKind(form url.Values) (kind calltree.Kind, err error) {
	if kind.Type, err = unescapeSegment(form.Get("type")); err != nil {
		return kind, err
	}
	kind.Unit, err = unescapeSegment(form.Get("unit"))
	return kind, err
}
