// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/callbraid/callbraid/internal/calltree"
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

// collect gives what comes of a service for so long, as answer to a request.
func (h *Handler) collect(w http.ResponseWriter, r *http.Request, service string, kind calltree.Kind, d time.Duration) (calltree.Snapshot, error) {
	// The server's times begin with the request; writing begins when the window ends, and
	// until then it reads, to see whether somebody still waits.
	controller := http.NewResponseController(w)
	for _, limit := range []struct {
		time time.Duration
		set  func(time.Time) error
	}{{h.options.ReadTimeout, controller.SetReadDeadline}, {h.options.WriteTimeout, controller.SetWriteDeadline}} {
		if limit.time <= 0 {
			continue
		}
		if err := limit.set(time.Now().Add(d + limit.time)); err != nil {
			return calltree.Snapshot{}, fmt.Errorf("let the response begin after %v: %w", d, err)
		}
	}
	return h.trees.Collect(r.Context(), service, kind, d)
}
