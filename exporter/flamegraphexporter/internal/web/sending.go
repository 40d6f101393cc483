// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"time"
)

// Bounds of sending what holds a turn: each piece has to be taken in time, before those
// who wait for the turn lose their patience.
const (
	pieceBytes    = 64 << 10
	piecePatience = turnPatience / 2
)

// sending is a response that holds a turn while it is written.
type sending struct {
	response   http.ResponseWriter
	controller *http.ResponseController
	// end is when all has to be sent; zero: whenever it is.
	end time.Time
}

// send begins a response that holds a turn.
func (h *Handler) send(w http.ResponseWriter) *sending {
	s := &sending{response: w, controller: http.NewResponseController(w)}
	if h.options.WriteTimeout > 0 {
		s.end = time.Now().Add(h.options.WriteTimeout)
	}
	return s
}

func (s *sending) Write(b []byte) (written int, err error) {
	for len(b) > 0 {
		piece := b[:min(len(b), pieceBytes)]
		deadline := time.Now().Add(piecePatience)
		if !s.end.IsZero() && s.end.Before(deadline) {
			deadline = s.end
		}
		if err := s.controller.SetWriteDeadline(deadline); err != nil {
			return written, err
		}
		n, err := s.response.Write(piece)
		written += n
		if err != nil {
			return written, err
		}
		b = b[n:]
	}
	return written, nil
}
