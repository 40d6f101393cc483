// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf2

import (
	"fmt"
	"sort"

	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// version is the version of the format that this package reads.
const version = 2

// maxEnv bounds the number of environment entries.
const maxEnv = 1 << 10

// preamble reads the first fragment (section 5.4).
func (p *Parser) preamble(o object) {
	if v := o.get("version"); v.unsigned() != version {
		v.fail(fmt.Sprintf("CTF version %d", version), "%d", v.unsigned())
	}
	if o.has("extensions") {
		if extensions := o.get("extensions").object(); len(extensions.value) > 0 {
			extensions.fail("no extensions", "%d", len(extensions.value))
		}
	}
	if p.repeated(o, "the preamble") {
		return
	}
	if o.has("uuid") {
		bytes := o.get("uuid").array()
		if len(bytes) != len(p.trace.UUID) {
			o.get("uuid").fail("16 integers", "%d", len(bytes))
		}
		for i, b := range bytes {
			if b.unsigned() > 0xFF {
				b.fail("a byte", "%d", b.unsigned())
			}
			p.trace.UUID[i] = byte(b.unsigned())
		}
		p.trace.HasUUID = true
	}
	p.trace.Major, p.trace.Minor, p.trace.Declared = version, 0, true
}

// alias reads a field class alias (section 5.5).
func (p *Parser) alias(o object) {
	name := o.text("name")
	if !p.repeated(o, "the field class alias "+name) {
		p.aliases[name] = p.fieldClass(o.get("field-class"), 0)
	}
}

// traceClass reads the trace class (section 5.6).
func (p *Parser) traceClass(o object) {
	if len(p.trace.Streams) > 0 && p.trace.PacketHeader == nil && o.has("packet-header-field-class") {
		o.fail("the trace class before data stream classes", "it after %d of them", len(p.trace.Streams))
	}
	if p.repeated(o, "the trace class") {
		return
	}
	p.trace.Name = o.textOr("name", "")
	p.trace.PacketHeader = p.structure(o, "packet-header-field-class")
	if !o.has("environment") {
		return
	}
	env := o.get("environment").object()
	if len(env.value) > maxEnv {
		env.fail(fmt.Sprintf("at most %d environment entries", maxEnv), "%d", len(env.value))
	}
	names := make([]string, 0, len(env.value))
	for name := range env.value {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		e := metadata.EnvEntry{Name: name}
		if v := env.get(name); v.described() == "a string" {
			e.Text = v.text()
		} else {
			e.Number, e.IsNumber = v.number(), true
		}
		p.trace.Env = append(p.trace.Env, e)
	}
}

// clockClass reads a clock class (section 5.7).
func (p *Parser) clockClass(o object) {
	c := &metadata.Clock{
		Name:        o.text("id"),
		Description: o.textOr("description", ""),
		Frequency:   o.get("frequency").unsigned(),
		Precision:   o.unsignedOr("precision", 0),
	}
	if c.Frequency == 0 {
		o.get("frequency").fail("a frequency above 0", "0")
	}
	if origin, ok := o.value["origin"].(string); ok {
		if origin != "unix-epoch" {
			o.get("origin").fail("unix-epoch or an object", "%q", origin)
		}
		c.Absolute = true
	}
	if o.has("offset-from-origin") {
		offset := o.get("offset-from-origin").object()
		if offset.has("seconds") {
			c.OffsetSeconds = offset.get("seconds").signed()
		}
		if offset.has("cycles") {
			c.Offset = offset.get("cycles").signed()
		}
	}
	if !p.repeated(o, "the clock class "+c.Name) {
		p.clocks[c.Name] = true
		p.trace.Clocks = append(p.trace.Clocks, c)
	}
}

// streamClass reads a data stream class (section 5.8).
func (p *Parser) streamClass(o object) {
	s := &metadata.Stream{
		ID:    o.unsignedOr("id", 0),
		HasID: true,
		Name:  o.textOr("name", ""),
		Clock: o.textOr("default-clock-class-id", ""),
	}
	if p.repeated(o, fmt.Sprintf("data stream class %d", s.ID)) {
		return
	}
	if s.Clock != "" && !p.clocks[s.Clock] {
		o.get("default-clock-class-id").fail("the ID of a clock class that was declared before", "%q", s.Clock)
	}
	s.PacketContext = p.structure(o, "packet-context-field-class")
	s.EventHeader = p.structure(o, "event-record-header-field-class")
	s.EventContext = p.structure(o, "event-record-common-context-field-class")
	p.streams[s.ID] = true
	p.trace.Streams = append(p.trace.Streams, s)
}

// eventClass reads an event record class (section 5.9).
func (p *Parser) eventClass(o object) {
	e := &metadata.Event{
		ID:          o.unsignedOr("id", 0),
		HasID:       true,
		StreamID:    o.unsignedOr("data-stream-class-id", 0),
		HasStreamID: true,
		Name:        o.textOr("name", ""),
	}
	if p.repeated(o, fmt.Sprintf("event record class %d of data stream class %d", e.ID, e.StreamID)) {
		return
	}
	if !p.streams[e.StreamID] {
		o.fail("the ID of a data stream class that was declared before", "%d", e.StreamID)
	}
	p.attributes(e, o)
	e.Context = p.structure(o, "specific-context-field-class")
	e.Fields = p.structure(o, "payload-field-class")
	p.trace.Events = append(p.trace.Events, e)
}

// logLevels maps the names of log levels in attributes to their numbers in CTF 1.8.
var logLevels = map[string]int64{
	"emergency": 0, "alert": 1, "critical": 2, "error": 3, "warning": 4, "notice": 5, "info": 6,
	"debug:system": 7, "debug:program": 8, "debug:process": 9, "debug:module": 10,
	"debug:unit": 11, "debug:function": 12, "debug:line": 13, "debug": 14,
}

// attributes reads those attributes of an event class that are properties in CTF 1.8: a log level and an EMF URI.
// They may be in any namespace.
func (p *Parser) attributes(e *metadata.Event, o object) {
	spaces, ok := o.value["attributes"].(map[string]any)
	if !ok {
		return
	}
	for _, space := range spaces {
		entries, ok := space.(map[string]any)
		if !ok {
			continue
		}
		if name, ok := entries["log-level"].(string); ok {
			e.LogLevel, e.HasLogLevel = logLevels[name], true
			if _, known := logLevels[name]; !known {
				e.HasLogLevel = false
				p.trace.Note(fmt.Sprintf("event class %q has an unknown log level: %q", e.Name, name))
			}
		}
		if uri, ok := entries["emf-uri"].(string); ok {
			e.URI = uri
		}
	}
}
