// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package serverhealth makes of what a receiver knows of the servers it is a client of, and of
// other things that it needs, one component status and a gauge.
//
// The status is the worst of all: a permanent error if one is given up, else a recoverable error
// if one has failed, else OK. The Collector lets no component recover from a permanent error. One
// that has neither failed nor been reached yet changes nothing. A status is reported when it
// changes, or when others fail, or for another reason, and not at each try.
//
// The gauge has a point for each server: 1 while it is connected and has said who it is, else 0.
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

// Health is that of all parts of a component. Its methods, and those of its parts, are for many
// goroutines.
type Health struct {
	mu sync.Mutex
	// host is nil before Start and after Stop: nothing is reported.
	host  component.Host
	parts []*Part
	// reported is the status that was reported last, and of what; StatusNone: none was.
	reported componentstatus.Status
	of       string
}

// Part is a server, or something else that a component needs.
type Part struct {
	health *Health
	name   string
	// counted says that the gauge has it.
	counted bool
	state   state
	err     error
}

// state is what is known of a part, in the order of how bad it is.
type state uint8

const (
	unknown state = iota
	up
	failed
	givenUp
)

// New makes the health of a component of which nothing is known yet.
func New() *Health { return &Health{} }

// Start has statuses reported to the component's host from now on.
func (h *Health) Start(host component.Host) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.host = host
	h.report()
}

// Stop ends that. It is called when a shutdown begins: the Collector reports the rest.
func (h *Health) Stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.host = nil
}

// Server adds a server, by the address that is configured.
func (h *Health) Server(address string) *Part { return h.add(address, true) }

// Part adds something that is no server, and that the gauge doesn't have.
func (h *Health) Part(name string) *Part { return h.add(name, false) }

func (h *Health) add(name string, counted bool) *Part {
	p := &Part{health: h, name: name, counted: counted}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.parts = append(h.parts, p)
	return p
}

// Observe gives the gauge: a point for each server, with its address as the attribute server.
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

// Up says that the server is connected and known, or that the part works.
func (p *Part) Up() { p.become(up, nil) }

// Failed says that the part doesn't work for a reason, and is tried again.
func (p *Part) Failed(why error) { p.become(failed, why) }

// GivenUp says that the part doesn't work for a reason, and is not tried again: somebody has to
// do something.
func (p *Part) GivenUp(why error) { p.become(givenUp, why) }

func (p *Part) become(s state, why error) {
	h := p.health
	h.mu.Lock()
	defer h.mu.Unlock()
	if p.state == givenUp {
		return
	}
	p.state, p.err = s, why
	h.report()
}

// Remove says that the part is needed no longer.
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

// maxNamed is how many parts an error names.
const maxNamed = 5

// report reports the status, if it is another one than was reported last. Nothing that has not
// failed needs one: the Collector has a component be OK that has started. The lock is held.
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

// failure is an error with all parts that don't work, and why, and what tells it from others:
// their names and reasons.
// The lock is held.
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

// withoutNumbers is the text of an error without what differs at each try, such as ports.
func withoutNumbers(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, text)
}
