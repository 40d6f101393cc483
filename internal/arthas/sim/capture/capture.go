// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package capture reads captures of the HTTP API of Arthas: text files in which >>> begins a request, <<< an answer with
// its time, and # a note.
package capture

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Exchange is a request with its answer.
type Exchange struct {
	// Notes are the notes before the request.
	Notes []string
	// Method, Path, RequestHeader and Request are the request. A body that the capture leaves out is a note in brackets.
	Method, Path  string
	RequestHeader map[string]string
	Request       string
	// Took is the time until the answer was complete.
	Took time.Duration
	// Status is 0 if the server closed the connection without an answer, or the client did.
	Status int
	Header map[string]string
	Answer string
	// Cut means that the capture has only the begin of the answer.
	Cut bool
}

// Read returns the exchanges of a capture.
func Read(name string) ([]Exchange, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read capture: %w", err)
	}
	exchanges, err := parse(string(content))
	if err != nil {
		return nil, fmt.Errorf("capture %s: %w", name, err)
	}
	return exchanges, nil
}

func parse(content string) (exchanges []Exchange, err error) {
	var notes, section []string
	flush := func() error {
		if len(section) == 0 {
			return nil
		}
		text := strings.Join(section[1:], "\n")
		switch section[0][:3] {
		case ">>>":
			e := Exchange{Notes: notes}
			notes = nil
			if err := e.readRequest(text); err != nil {
				return err
			}
			exchanges = append(exchanges, e)
		case "<<<":
			if len(exchanges) == 0 {
				return fmt.Errorf("expected a request before %q", section[0])
			}
			return exchanges[len(exchanges)-1].readAnswer(section[0], text)
		}
		return nil
	}
	for _, line := range strings.Split(content, "\n") {
		switch {
		case strings.HasPrefix(line, ">>> "), strings.HasPrefix(line, "<<< "), strings.HasPrefix(line, "!!! "):
			if err := flush(); err != nil {
				return nil, err
			}
			section = []string{line}
		case strings.HasPrefix(line, "# "):
			if err := flush(); err != nil {
				return nil, err
			}
			section = nil
			notes = append(notes, line[2:])
		case section != nil:
			section = append(section, line)
		}
	}
	return exchanges, flush()
}

func (e *Exchange) readRequest(text string) error {
	head, body, _ := strings.Cut(text, "\n\n")
	first, header, _ := strings.Cut(head, "\n")
	words := strings.Fields(first)
	if len(words) != 3 {
		return fmt.Errorf("expected a request line, got %q", first)
	}
	e.Method, e.Path, e.RequestHeader = words[0], words[1], fields(header)
	e.Request = strings.TrimRight(body, "\n")
	return nil
}

func (e *Exchange) readAnswer(line, text string) error {
	_, took, _ := strings.Cut(line, "(+")
	took, _, _ = strings.Cut(took, "s,")
	seconds, err := strconv.ParseFloat(took, 64)
	if err != nil {
		return fmt.Errorf("expected the time of an answer, got %q", line)
	}
	e.Took = time.Duration(seconds * float64(time.Second))
	text = strings.TrimPrefix(text, "HTTP/1.1 100 Continue\n\n")
	head, body, _ := strings.Cut(text, "\n\n")
	first, header, _ := strings.Cut(head, "\n")
	words := strings.Fields(first)
	if len(words) == 0 {
		return nil
	}
	if len(words) < 2 {
		return fmt.Errorf("expected a status line, got %q", first)
	}
	if e.Status, err = strconv.Atoi(words[1]); err != nil {
		return fmt.Errorf("expected a status line, got %q", first)
	}
	e.Header, e.Answer = fields(header), strings.TrimRight(body, "\n")
	if length, err := strconv.Atoi(e.Header["content-length"]); err == nil {
		e.Cut = len(e.Answer) < length
	}
	return nil
}

func fields(header string) map[string]string {
	m := map[string]string{}
	for _, line := range strings.Split(header, "\n") {
		if name, value, found := strings.Cut(line, ": "); found {
			m[strings.ToLower(name)] = value
		}
	}
	return m
}
