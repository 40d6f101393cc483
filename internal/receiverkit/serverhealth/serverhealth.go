// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package serverhealth reports one component status and a gauge for all servers that a receiver is a client of, and for
// its other parts, such as a port.
//
// The status is that of the worst part: a permanent error if a part is given up, else a recoverable error if a part has
// failed, else OK. The Collector lets no component recover from a permanent error. A part that has no result yet counts
// as OK. Health reports a status when the status, the failed parts, or their reasons change, and not at each try.
//
// The gauge has a point for each server: 1 while it is connected and identified, else 0.
package serverhealth

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"unicode"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Health has all parts of a component. Its methods, and those of its parts, can be called from many goroutines.
type Health struct {
	mu sync.Mutex
	// host is nil before Start and after Stop. Then Health reports nothing.
	host  component.Host
	parts []*Part
	// reported is the last reported status; StatusNone: none. of has the failed parts and their reasons.
	reported componentstatus.Status
	of       string
}

// Part is a server, or another thing that a component needs.
type Part struct {
	health *Health
	name   string
	// counted: the gauge has a point of the part.
	counted bool
	state   state
	err     error
}

// state is the state of a part. A larger one is worse.
type state uint8

const (
	unknown state = iota
	up
	failed
	givenUp
)

// New returns the health of a component without parts.
func New() *Health { return &Health{} }

// Start begins to report statuses to the component's host.
func (h *Health) Start(host component.Host) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.host = host
	h.report()
}

// Stop ends the reports. A receiver calls it when its shutdown begins: the Collector reports the further statuses.
func (h *Health) Stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.host = nil
}

// Server adds a server with its configured address, and returns it.
func (h *Health) Server(address string) *Part { return h.newPart(address, true) }

// Part adds a part that is not a server, and returns it. The gauge has no point of it.
func (h *Health) Part(name string) *Part { return h.newPart(name, false) }

func (h *Health) newPart(name string, counted bool) *Part {
	p := &Part{health: h, name: name, counted: counted}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.parts = append(h.parts, p)
	return p
}

// Observe records the gauge: a point for each server, with its address as the attribute server.
func (h *Health) Observe(_ context.Context, observer metric.Int64Observer) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.parts {
		if !p.counted {
			continue
		}
		value := int64(0)
		if p.state == up {
			value = 1
		}
		observer.Observe(value, metric.WithAttributeSet(attribute.NewSet(attribute.String("server", p.name))))
	}
	return nil
}

// Up sets the state: the server is connected and identified, or the part works.
func (p *Part) Up() { p.setState(up, nil) }

// Failed sets the state: the part does not work, and the receiver tries again.
func (p *Part) Failed(why error) { p.setState(failed, why) }

// GivenUp sets the state: the part does not work, and the receiver does not try again. A person must act.
func (p *Part) GivenUp(why error) { p.setState(givenUp, why) }

func (p *Part) setState(s state, why error) {
	h := p.health
	h.mu.Lock()
	defer h.mu.Unlock()
	if p.state == givenUp {
		return
	}
	p.state, p.err = s, why
	h.report()
}

// Remove removes the part from its Health.
func (p *Part) Remove() {
	h := p.health
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, other := range h.parts {
		if other == p {
			h.parts = append(h.parts[:i], h.parts[i+1:]...)
			h.report()
			return
		}
	}
}

// maxNamed bounds the parts that an error names.
const maxNamed = 5

// report reports the status if it differs from the last reported one. Without a failure it reports none at first,
// because the Collector reports OK for a started component. The lock is held.
func (h *Health) report() {
	if h.host == nil {
		return
	}
	worst := unknown
	for _, p := range h.parts {
		worst = max(worst, p.state)
	}
	status := componentstatus.StatusOK
	switch worst {
	case givenUp:
		status = componentstatus.StatusPermanentError
	case failed:
		status = componentstatus.StatusRecoverableError
	}
	var err error
	of := ""
	if worst >= failed {
		of, err = h.failure()
	}
	if h.reported == componentstatus.StatusNone && worst < failed || status == h.reported && of == h.of {
		return
	}
	h.reported, h.of = status, of
	var options []componentstatus.EventBuilderOption
	if err != nil {
		options = append(options, componentstatus.WithError(err))
	}
	componentstatus.ReportStatus(h.host, componentstatus.NewEvent(status, options...))
}

// failure returns an error with the failed parts and their reasons. of has the same without numbers, to compare two
// failures. The lock is held.
func (h *Health) failure() (of string, err error) {
	var texts, parts []string
	bad := 0
	for _, p := range h.parts {
		if p.state < failed {
			continue
		}
		parts = append(parts, p.name, withoutNumbers(p.err.Error()))
		if bad++; bad <= maxNamed {
			texts = append(texts, fmt.Sprintf("%s: %v", p.name, p.err))
		}
	}
	if bad > maxNamed {
		texts = append(texts, fmt.Sprintf("and %d more", bad-maxNamed))
	}
	return strings.Join(parts, "\n"), fmt.Errorf("%d of %d failed: %s", bad, len(h.parts), strings.Join(texts, "; "))
}

// withoutNumbers returns the text of an error without digits, such as those of ports, which differ at each try.
func withoutNumbers(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, text)
}
