// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package slots

import (
	"net"
	"net/http"
	"sync"
)

// HTTP has the slots of an HTTP server. A connection with the header of a request is established until the response is
// written. Between two requests it can lose its slot.
type HTTP struct {
	*Slots

	mu   sync.Mutex
	open map[net.Conn]*Slot
}

// Serve makes a server use slots, and returns the listener for its Serve. One address has at most half of the
// connections.
func Serve(server *http.Server, from net.Listener, o Options) (*HTTP, net.Listener) {
	o.PerAddress, o.SettingPerAddress = (o.Max+1)/2, "half of "+o.Setting
	h := &HTTP{Slots: New(o), open: map[net.Conn]*Slot{}}
	server.ConnState = h.onState
	return h, h.Listen(from)
}

// onState is the ConnState of the server.
func (h *HTTP) onState(conn net.Conn, state http.ConnState) {
	if state == http.StateNew {
		h.begin(conn)
		return
	}
	h.mu.Lock()
	slot := h.open[conn]
	if state == http.StateClosed || state == http.StateHijacked {
		delete(h.open, conn)
	}
	h.mu.Unlock()
	if slot == nil {
		return
	}
	switch state {
	case http.StateActive:
		slot.Establish()
	case http.StateIdle:
		slot.Rest()
	default:
		slot.Release()
	}
}

// begin admits a new connection, or closes it.
func (h *HTTP) begin(conn net.Conn) {
	slot, full := h.AdmitBeyond(conn)
	if full != nil {
		h.close(&Slot{conn: conn}, Refused, full)
		return
	}
	h.mu.Lock()
	h.open[conn] = slot
	h.mu.Unlock()
}
