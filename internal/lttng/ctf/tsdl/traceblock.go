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

// maxEnv bounds the environment's entries.
const maxEnv = 1 << 10

// traceBlock reads: { major = 1; minor = 8; byte_order = le; … };
func (p *Parser) traceBlock(at metadata.Position) {
	t := metadata.Trace{Major: major, Minor: minor}
	p.attributes(p.root.inner(), "a trace", func(a attribute) bool {
		switch a.name {
		case "major":
			p.version(a, major)
		case "minor":
			p.version(a, minor)
		case "uuid":
			t.UUID, t.HasUUID = p.uuidOf(a), true
		case "byte_order":
			t.ByteOrder = p.byteOrderOf(a, false)
		case "packet.header":
			t.PacketHeader = p.structOf(a)
		default:
			return false
		}
		return true
	})
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
	p.attributes(p.root.inner(), "a stream", func(a attribute) bool {
		switch a.name {
		case "id":
			t.ID, t.HasID = p.unsignedOf(a), true
		case "event.header":
			t.EventHeader = p.structOf(a)
		case "event.context":
			t.EventContext = p.structOf(a)
		case "packet.context":
			t.PacketContext = p.structOf(a)
		default:
			return false
		}
		return true
	})
	p.expect(";")
	if !p.repeated(at, fmt.Sprintf("stream class %d", t.ID)) {
		p.trace.Streams = append(p.trace.Streams, t)
	}
}

// eventBlock reads: { name = "x"; id = 0; stream_id = 0; fields := …; … };
func (p *Parser) eventBlock(at metadata.Position) {
	t := &metadata.Event{}
	p.attributes(p.root.inner(), "an event", func(a attribute) bool {
		switch a.name {
		case "name":
			t.Name = p.stringOf(a)
		case "id":
			t.ID, t.HasID = p.unsignedOf(a), true
		case "stream_id":
			t.StreamID, t.HasStreamID = p.unsignedOf(a), true
		case "loglevel":
			t.LogLevel, t.HasLogLevel = p.signedOf(a), true
		case "model.emf.uri":
			t.URI = p.stringOf(a)
		case "context":
			t.Context = p.structOf(a)
		case "fields":
			t.Fields = p.structOf(a)
		default:
			return false
		}
		return true
	})
	p.expect(";")
	if !p.repeated(at, fmt.Sprintf("event class %d of stream class %d", t.ID, t.StreamID)) {
		p.trace.Events = append(p.trace.Events, t)
	}
}

// clockBlock reads: { name = "monotonic"; freq = 1000000000; … };
func (p *Parser) clockBlock(at metadata.Position) {
	t := &metadata.Clock{Frequency: 1e9}
	p.attributes(p.root.inner(), "a clock", func(a attribute) bool {
		switch a.name {
		case "name":
			t.Name = p.stringOf(a)
		case "uuid":
			t.UUID, t.HasUUID = p.uuidOf(a), true
		case "description":
			t.Description = p.stringOf(a)
		case "freq":
			if t.Frequency = p.unsignedOf(a); t.Frequency == 0 {
				p.fail(a.where, "a frequency above 0", "0")
			}
		case "precision":
			t.Precision = p.unsignedOf(a)
		case "offset":
			t.Offset = p.signedOf(a)
		case "offset_s":
			t.OffsetSeconds = p.signedOf(a)
		case "absolute":
			t.Absolute = p.booleanOf(a)
		default:
			return false
		}
		return true
	})
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
		p.want(a, attributeString, attributeWord, attributeNumber)
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

// environment adds an entry that isn't there yet.
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
	p.attributes(p.root.inner(), "a callsite", func(a attribute) bool {
		switch a.name {
		case "name":
			t.Name = p.stringOf(a)
		case "func":
			t.Function = p.stringOf(a)
		case "file":
			t.File = p.stringOf(a)
		case "line":
			t.Line = p.unsignedOf(a)
		case "ip":
			t.IP = p.unsignedOf(a)
		default:
			return false
		}
		return true
	})
	p.expect(";")
	p.trace.Callsites = append(p.trace.Callsites, t)
}
