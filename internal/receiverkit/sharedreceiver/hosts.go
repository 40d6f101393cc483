// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package sharedreceiver

import (
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
)

// hosts has the host of each signal, because the Collector has a status for each. The zero value has none.
type hosts struct {
	mu    sync.Mutex
	all   []component.Host
	event *componentstatus.Event
}

// connect adds a host, and reports the last status to it, if the receiver has reported one.
func (h *hosts) connect(host component.Host) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, host)
	if h.event != nil {
		componentstatus.ReportStatus(host, h.event)
	}
}

// sharedHost is the receiver's host: the host of the first signal. It reports statuses to all hosts.
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
