// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package printed reads, for tests, the output of babeltrace 1 for a trace, printed with all names. This project's
// decoder is compared with it, because babeltrace shares no code with this project.
//
// The text contains less than the trace: it has no types of numbers, at most six digits of floating point numbers, no
// day of a time, and no escapes in texts. So a quotation mark ends a text only if the following characters can follow
// a value.
package printed

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Event is one event.
type Event struct {
	// Text is the printed text of the event, without the line's end.
	Text string
	// Time is the time of day in UTC, with nine digits after the point.
	Time string
	Host string
	Name string
	// LogLevel is the number of its log level, and LevelName its name. LevelName is "" if the event has none.
	LogLevel  int
	LevelName string
	// PacketContext, StreamContext, EventContext and Fields are the printed scopes. They are nil if the event has
	// none.
	PacketContext, StreamContext, EventContext, Fields Struct
}

// begin is the start of the text of each event.
const begin = "timestamp = "

// Split returns the text of each event. Texts in it may have several lines.
func Split(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	rest, ok := strings.CutPrefix(text, begin)
	if !ok {
		return nil, fmt.Errorf("expected a text that begins with %q, got %.40q", begin, text)
	}
	events := strings.Split(strings.TrimSuffix(rest, "\n"), "\n"+begin)
	for i := range events {
		events[i] = begin + events[i]
	}
	return events, nil
}

// Events reads all events of a text.
func Events(text string) ([]Event, error) {
	texts, err := Split(text)
	if err != nil {
		return nil, err
	}
	events := make([]Event, len(texts))
	for i, t := range texts {
		if events[i], err = newEvent(t); err != nil {
			return nil, fmt.Errorf("event %d: %w", i, err)
		}
	}
	return events, nil
}

// newEvent reads the text of one event: assignments separated by commas. Only the scopes have values of the trace.
func newEvent(text string) (Event, error) {
	e := Event{Text: text}
	p := parser{text: text}
	for {
		name, err := p.name()
		if err == nil {
			err = e.readAssignment(name, &p)
		}
		if err != nil {
			return e, fmt.Errorf("at byte %d of %q: %w", p.at, text, err)
		}
		if p.at == len(text) {
			return e, nil
		}
		// If the trace has no name, babeltrace 1 prints nothing between two commas.
		for p.skip(", ") {
		}
	}
}

// readAssignment reads the value of one assignment.
func (e *Event) readAssignment(name string, p *parser) (err error) {
	switch name {
	case "stream.packet.context":
		e.PacketContext, err = p.structure()
	case "stream.event.context":
		e.StreamContext, err = p.structure()
	case "event.context":
		e.EventContext, err = p.structure()
	case "event.fields":
		e.Fields, err = p.structure()
	case "timestamp":
		e.Time = p.word()
	case "trace:hostname":
		e.Host = p.word()
	case "name":
		e.Name = p.word()
	case "loglevel":
		err = e.readLevel(p.word())
	case "trace", "trace:domain":
		p.word()
	default:
		err = fmt.Errorf("expected a property of an event in the output of babeltrace 1, got %q", name)
	}
	return err
}

// readLevel reads a log level: NAME (NUMBER).
func (e *Event) readLevel(text string) error {
	name, number, ok := strings.Cut(strings.TrimSuffix(text, ")"), " (")
	if !ok {
		return fmt.Errorf("expected a log level with its number, got %q", text)
	}
	n, err := strconv.Atoi(number)
	if err != nil {
		return errors.New("expected a number of a log level, got " + strconv.Quote(number))
	}
	e.LogLevel, e.LevelName = n, name
	return nil
}

// Field returns the printed value of a field, or of a context if there is no such field, or "". Texts have no
// quotation marks.
func (e *Event) Field(name string) string {
	for _, scope := range [...]Struct{e.Fields, e.EventContext, e.StreamContext, e.PacketContext} {
		for _, m := range scope {
			if m.Name == name {
				return m.printed
			}
		}
	}
	return ""
}
