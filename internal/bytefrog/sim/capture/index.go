// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
)

// Arrival is one row of the index: a piece of a connection that arrived, a command
// that was sent to the agent, or the end of a connection.
type Arrival struct {
	// Time is counted from the start of the recording.
	Time time.Duration
	// File is the file of the connection: "control.bin" or DataFile(n).
	File string
	// Kind is one of "in" (a piece arrived), "out:COMMAND" (COMMAND was sent to the agent, such as
	// "suspend"), or "close" (the agent closed the connection).
	Kind string
	// Offset and Length are the position of the piece in File. They are meaningful only in rows with "in".
	Offset, Length int
}

// The values of Arrival.Kind.
const (
	In        = "in"
	Close     = "close"
	outPrefix = "out:"
)

// Command returns the command that was sent to the agent, such as "suspend"; ok is false for other rows.
func (a Arrival) Command() (command string, ok bool) {
	return strings.CutPrefix(a.Kind, outPrefix)
}

// UnmarshalJSON reads a row [seconds, file, what, offset, length].
func (a *Arrival) UnmarshalJSON(text []byte) error {
	var seconds float64
	row := []any{&seconds, &a.File, &a.Kind, &a.Offset, &a.Length}
	want := len(row)
	if err := json.Unmarshal(text, &row); err != nil {
		return err
	}
	if len(row) != want {
		return fmt.Errorf("expected a row of %d values, got %d", want, len(row))
	}
	if seconds < 0 || seconds > math.MaxInt64/float64(time.Second) {
		return fmt.Errorf("expected a time in seconds, got %v", seconds)
	}
	a.Time = time.Duration(math.Round(seconds*float64(time.Second/time.Microsecond))) * time.Microsecond
	return nil
}

func parseIndex(text []byte) ([]Arrival, error) {
	var index []Arrival
	if err := json.Unmarshal(text, &index); err != nil {
		return nil, fmt.Errorf("expected rows of [seconds, file, what, offset, length]: %w", err)
	}
	return index, nil
}

// checkIndex checks that a player can follow the index: times do not decrease, and the pieces of each connection are
// consecutive and complete.
func checkIndex(index []Arrival, files map[string][]byte) error {
	arrived := map[string]int{}
	var last time.Duration
	for i, a := range index {
		content, ok := files[a.File]
		_, isCommand := a.Command()
		switch {
		case !ok || a.File == indexFile || a.File == configurationFile:
			return fmt.Errorf("row %d: expected a connection's file, got %q", i, a.File)
		case a.Time < last:
			return fmt.Errorf("row %d: expected a time from %v on, got %v", i, last, a.Time)
		case a.Kind != In && a.Kind != Close && !isCommand:
			return fmt.Errorf("row %d: expected in, close or out:COMMAND, got %q", i, a.Kind)
		case a.Kind == In && (a.Offset != arrived[a.File] || a.Length < 0 || a.Length > len(content)-a.Offset):
			return fmt.Errorf("row %d: expected a piece of %s from byte %d within %d, got %d bytes from %d",
				i, a.File, arrived[a.File], len(content), a.Length, a.Offset)
		}
		if a.Kind == In {
			arrived[a.File] += a.Length
		}
		last = a.Time
	}
	for name, content := range files {
		if isConnection := name == controlFile || dataFile.MatchString(name); isConnection && arrived[name] != len(content) {
			return fmt.Errorf("expected all %d bytes of %s, got %d", len(content), name, arrived[name])
		}
	}
	return nil
}
