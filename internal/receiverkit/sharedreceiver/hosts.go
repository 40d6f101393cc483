// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package sharedreceiver

import (
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
)

// hosts are those of a receiver's signals: the collector has a status for each. The zero value
// has none.
type hosts struct {
	mu    sync.Mutex
	all   []component.Host
	event *componentstatus.Event
}

// add adds a host, which hears of the last status if there was one.
func (h *hosts) add(host component.Host) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, host)
	if h.event != nil {
		componentstatus.ReportStatus(host, h.event)
	}
}

// sharedHost is the host that the receiver has: the first one's, which reports to all.
type sharedHost struct {
	component.Host
	hosts *hosts
}

// Report reports a status of the receiver.
func (s sharedHost) Report(event *componentstatus.Event) {
	h := s.hosts
	h.mu.Lock()
	defer h.mu.Unlock()
	h.event = event
	for _, host := range h.all {
		componentstatus.ReportStatus(host, event)
	}
}
