// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"fmt"
	"net/http"
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
