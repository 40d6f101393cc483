// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package tsdl

import (
	"fmt"

	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// The version of the format that this package reads.
const (
	major = 1
	minor = 8
)

// maxEnv bounds the number of environment entries.
const maxEnv = 1 << 10

// traceBlock reads: { major = 1; minor = 8; byte_order = le; … };
func (p *Parser) traceBlock(at metadata.Position) {
	t := metadata.Trace{Major: major, Minor: minor}
	p.attributes(p.root.inner(), "a trace", block{
		{"major", func(a attribute) { p.version(a, major) }},
		{"minor", func(a attribute) { p.version(a, minor) }},
		{"uuid", setPresent(&t.UUID, &t.HasUUID, p.uuidOf)},
		{"byte_order", func(a attribute) { t.ByteOrder = p.byteOrderOf(a, false) }},
		{"packet.header", set(&t.PacketHeader, p.structOf)},
	}.read)
	p.expect(";")
	if t.ByteOrder == metadata.NativeOrder {
		p.fail(at, "a trace with byte_order", "none")
	}
	if p.repeated(at, "the trace") {
		return
	}
	p.trace.Declared = true
	p.trace.Major, p.trace.Minor = t.Major, t.Minor
	p.trace.UUID, p.trace.HasUUID = t.UUID, t.HasUUID
	p.trace.ByteOrder, p.trace.PacketHeader = t.ByteOrder, t.PacketHeader
}

func (p *Parser) version(a attribute, want uint64) {
	if n := p.unsignedOf(a); n != want {
		p.fail(a.where, fmt.Sprintf("CTF version %d.%d", major, minor), "%s %d", a.name, n)
	}
}

// streamBlock reads: { id = 0; event.header := …; … };
func (p *Parser) streamBlock(at metadata.Position) {
	t := &metadata.Stream{}
	p.attributes(p.root.inner(), "a stream", block{
		{"id", setPresent(&t.ID, &t.HasID, p.unsignedOf)},
		{"event.header", set(&t.EventHeader, p.structOf)},
		{"event.context", set(&t.EventContext, p.structOf)},
		{"packet.context", set(&t.PacketContext, p.structOf)},
	}.read)
	p.expect(";")
	if !p.repeated(at, fmt.Sprintf("stream class %d", t.ID)) {
		p.trace.Streams = append(p.trace.Streams, t)
	}
}

// eventBlock reads: { name = "x"; id = 0; stream_id = 0; fields := …; … };
func (p *Parser) eventBlock(at metadata.Position) {
	t := &metadata.Event{}
	p.attributes(p.root.inner(), "an event", block{
		{"name", set(&t.Name, p.stringOf)},
		{"id", setPresent(&t.ID, &t.HasID, p.unsignedOf)},
		{"stream_id", setPresent(&t.StreamID, &t.HasStreamID, p.unsignedOf)},
		{"loglevel", setPresent(&t.LogLevel, &t.HasLogLevel, p.signedOf)},
		{"model.emf.uri", set(&t.URI, p.stringOf)},
		{"context", set(&t.Context, p.structOf)},
		{"fields", set(&t.Fields, p.structOf)},
	}.read)
	p.expect(";")
	if !p.repeated(at, fmt.Sprintf("event class %d of stream class %d", t.ID, t.StreamID)) {
		p.trace.Events = append(p.trace.Events, t)
	}
}

// clockBlock reads: { name = "monotonic"; freq = 1000000000; … };
func (p *Parser) clockBlock(at metadata.Position) {
	t := &metadata.Clock{Frequency: 1e9}
	p.attributes(p.root.inner(), "a clock", block{
		{"name", set(&t.Name, p.stringOf)},
		{"uuid", setPresent(&t.UUID, &t.HasUUID, p.uuidOf)},
		{"description", set(&t.Description, p.stringOf)},
		{"freq", func(a attribute) {
			if t.Frequency = p.unsignedOf(a); t.Frequency == 0 {
				p.fail(a.where, "a frequency above 0", "0")
			}
		}},
		{"precision", set(&t.Precision, p.unsignedOf)},
		{"offset", set(&t.Offset, p.signedOf)},
		{"offset_s", set(&t.OffsetSeconds, p.signedOf)},
		{"absolute", set(&t.Absolute, p.booleanOf)},
	}.read)
	p.expect(";")
	if t.Name == "" {
		p.fail(at, "a clock with a name", "none")
	}
	if !p.repeated(at, "the clock "+t.Name) {
		p.trace.Clocks = append(p.trace.Clocks, t)
	}
}

// envBlock reads: { NAME = "text"; NAME = 0; };
func (p *Parser) envBlock(at metadata.Position) {
	var entries []metadata.EnvEntry
	p.attributes(p.root.inner(), "the environment", func(a attribute) bool {
		p.requireKind(a, attributeString, attributeWord, attributeNumber)
		entries = append(entries, metadata.EnvEntry{
			Name: a.name, Text: a.text, Number: a.number, IsNumber: a.kind == attributeNumber,
		})
		return true
	})
	p.expect(";")
	for _, e := range entries {
		p.environment(e, at)
	}
}

// environment adds an entry, unless it exists already.
func (p *Parser) environment(e metadata.EnvEntry, at metadata.Position) {
	for _, before := range p.trace.Env {
		if before.Name == e.Name {
			if before != e {
				p.fail(at, "environment entry "+e.Name+" as it was declared before", "another value")
			}
			return
		}
	}
	if len(p.trace.Env) == maxEnv {
		p.fail(at, fmt.Sprintf("at most %d environment entries", maxEnv), "more")
	}
	p.trace.Env = append(p.trace.Env, e)
}

// callsiteBlock reads: { name = "x"; func = "f"; file = "f.c"; line = 1; };
func (p *Parser) callsiteBlock(metadata.Position) {
	var t metadata.Callsite
	p.attributes(p.root.inner(), "a callsite", block{
		{"name", set(&t.Name, p.stringOf)},
		{"func", set(&t.Function, p.stringOf)},
		{"file", set(&t.File, p.stringOf)},
		{"line", set(&t.Line, p.unsignedOf)},
		{"ip", set(&t.IP, p.unsignedOf)},
	}.read)
	p.expect(";")
	p.trace.Callsites = append(p.trace.Callsites, t)
}
