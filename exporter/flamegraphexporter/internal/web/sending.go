// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"time"
)

// Bounds of sending a response with a turn: the client must accept each piece in time, before
// requests that wait for the turn give up.
const (
	pieceBytes    = 64 << 10
	piecePatience = turnPatience / 2
)

// mostSent bounds the memory of all pages that are being sent, in bytes, because readers can be
// slow. One page is sent at any size.
const mostSent = 64 << 20

// whileSent counts a page of so many bytes while it is being sent.
func (h *Handler) whileSent(bytes int, send func()) error {
	defer h.sent.Add(-int64(bytes))
	if sum := h.sent.Add(int64(bytes)); sum > mostSent && sum > int64(bytes) {
		return errTooMany
	}
	turn := h.turn(nil)
	defer turn.end()
	if err := turn.hold(int64(bytes)); err != nil {
		return err
	}
	send()
	return nil
}

// sending is a response that has its turn until it is written.
type sending struct {
	response   http.ResponseWriter
	controller *http.ResponseController
	turn       *turn
	// end is when all has to be sent; zero: whenever it is.
	end time.Time
}

// send begins a response that has its turn.
func (h *Handler) send(w http.ResponseWriter, t *turn) *sending {
	s := &sending{response: w, controller: http.NewResponseController(w), turn: t}
	if h.options.WriteTimeout > 0 {
		s.end = time.Now().Add(h.options.WriteTimeout)
	}
	return s
}

func (s *sending) Write(b []byte) (written int, err error) {
	for len(b) > 0 {
		if s.turn.isOver.Load() {
			return written, errMemory
		}
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
