// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/capture"
)

// Recording is a checked capture: it can be played to its end.
type Recording struct {
	data     []connection
	control  []report
	begin    time.Duration // arrival of the first data hello
	duration time.Duration // from begin to the last arrival
	events   uint64        // call events and markers
	calls    uint64        // method entries
	numbers  uint32        // the highest sequence number plus 1
	lastTime uint32        // the highest time of an event, milliseconds
}

// controlFile is the name of the control connection in the index and in errors.
const controlFile = "control.bin"

// connection has the bytes of one data connection after its hello.
type connection struct {
	bytes    []byte
	arrivals []arrival
}

// arrival means that the bytes before end had arrived at that time.
type arrival struct {
	end int
	at  time.Duration
}

// report is a message of the control connection.
type report struct {
	message bytefrog.Message
	at      time.Duration
}

// Load checks a capture. Its sequence numbers must not wrap.
func Load(c *capture.Capture) (*Recording, error) {
	r := &Recording{}
	if err := r.loadControl(c); err != nil {
		return nil, err
	}
	for i, b := range c.Data {
		if err := r.loadData(c, i, b); err != nil {
			return nil, err
		}
	}
	if r.events == 0 {
		return nil, fmt.Errorf("expected at least one call event in the capture, got none")
	}
	return r, nil
}

// Before returns the recording without the events and markers numbered n and above. It keeps all names.
func (r *Recording) Before(n uint32) *Recording {
	part := &Recording{begin: r.begin, duration: r.duration}
	for _, report := range r.control {
		if b, isBreak := report.message.(bytefrog.DataBreak); !isBreak || b.Sequence < n {
			part.control = append(part.control, report)
		}
	}
	for _, c := range r.data {
		part.data = append(part.data, part.before(c, n))
	}
	return part
}

// before returns a connection without the events numbered n and above, and counts the others.
func (r *Recording) before(c connection, n uint32) (part connection) {
	arrivals, read := c.arrivals, 0
	each(c.bytes, func(m message) {
		read += len(m.bytes)
		if !m.numbered || m.sequence < n {
			part.bytes = append(part.bytes, m.bytes...)
			r.count(m)
		}
		for len(arrivals) > 0 && arrivals[0].end <= read {
			part.arrivals = append(part.arrivals, arrival{end: len(part.bytes), at: arrivals[0].at})
			arrivals = arrivals[1:]
		}
	})
	return part
}

// count counts a message of a data connection.
func (r *Recording) count(m message) {
	if !m.numbered {
		return
	}
	r.events++
	if bytefrog.MessageType(m.bytes[0]) == bytefrog.TypeMethodEntry {
		r.calls++
	}
	r.numbers = max(r.numbers, m.sequence+1)
	r.lastTime = max(r.lastTime, m.time)
}

// Events returns the number of call events and markers.
func (r *Recording) Events() uint64 { return r.events }

// Calls returns the number of method entries: each becomes a span.
func (r *Recording) Calls() uint64 { return r.calls }

// Duration returns the duration of the capture.
func (r *Recording) Duration() time.Duration { return r.duration }

// Connections returns the number of data connections of the captured agent.
func (r *Recording) Connections() int { return len(r.data) }

func (r *Recording) loadControl(c *capture.Capture) error {
	arrivals := arrivalsOf(c, controlFile, 0)
	b := c.Control
	m, n, err := bytefrog.DecodeFirst(b, bytefrog.MaxString)
	if _, isHello := m.(bytefrog.Hello); !isHello {
		return fmt.Errorf("%s: expected hello, got %v (%v)", controlFile, m, err)
	}
	for at := n; at < len(b); {
		m, n, err := bytefrog.DecodeControl(b[at:], bytefrog.MaxString)
		if err != nil {
			return fmt.Errorf("%s: from byte %d: %w", controlFile, at, err)
		}
		if n == 0 {
			break // the agent's end truncated its last message
		}
		at += n
		if m.Type() != bytefrog.TypeHeartbeat {
			r.control = append(r.control, report{message: m, at: timeOf(arrivals, at)})
		}
	}
	return nil
}

func (r *Recording) loadData(c *capture.Capture, i int, b []byte) error {
	name := capture.DataFile(i)
	m, n, err := bytefrog.DecodeFirst(b, bytefrog.MaxString)
	if _, isHello := m.(bytefrog.DataHello); !isHello {
		return fmt.Errorf("%s: expected data hello, got %v (%v)", name, m, err)
	}
	arrivals := arrivalsOf(c, name, n)
	if len(arrivals) > 0 {
		if i == 0 || arrivals[0].at < r.begin {
			r.begin = arrivals[0].at
		}
		r.duration = max(r.duration, arrivals[len(arrivals)-1].at-r.begin)
	}
	for at := n; at < len(b); {
		m, err := next(b[at:])
		if err != nil {
			return fmt.Errorf("%s: from byte %d: %w", name, at, err)
		}
		at += len(m.bytes)
		r.count(m)
	}
	r.data = append(r.data, connection{bytes: b[n:], arrivals: arrivals})
	return nil
}

// arrivalsOf returns the arrivals of a file, with ends relative to offset from.
func arrivalsOf(c *capture.Capture, file string, from int) []arrival {
	var list []arrival
	for _, row := range c.Index {
		if row.File == file && row.Kind == capture.In {
			list = append(list, arrival{end: row.Offset + row.Length - from, at: row.Time})
		}
	}
	return list
}

// timeOf returns the time at which the bytes before end had arrived.
func timeOf(arrivals []arrival, end int) time.Duration {
	for _, a := range arrivals {
		if a.end >= end {
			return a.at
		}
	}
	return 0
}
