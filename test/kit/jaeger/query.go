// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package jaeger

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Trace is a trace as Jaeger's pages receive it.
type Trace struct {
	ID    string `json:"traceID"`
	Spans []Span
	// Warnings are those of the trace, not of its spans.
	Warnings []string
}

// Span is as much of a span as tests look at here; all of it is in the OTLP.
type Span struct {
	ID         string `json:"spanID"`
	Name       string `json:"operationName"`
	References []Reference
	// Warnings are Jaeger's warnings: an impossible time, or a missing parent.
	Warnings []string
}

// Reference leads from a span to its parent, or along a link.
type Reference struct {
	Kind  string `json:"refType"` // CHILD_OF or FOLLOWS_FROM
	Trace string `json:"traceID"`
	Span  string `json:"spanID"`
}

// AllWarnings are those of the trace and of its spans, each with the name of its span.
func (t Trace) AllWarnings() []string {
	all := slices.Clone(t.Warnings)
	for _, span := range t.Spans {
		for _, warning := range span.Warnings {
			all = append(all, span.Name+": "+warning)
		}
	}
	return all
}

// Services are the names of all services, sorted.
func (s *Server) Services(t testing.TB) []string {
	t.Helper()
	var services struct{ Services []string }
	if err := s.get("/api/v3/services", nil, &services); err != nil {
		t.Fatal(err)
	}
	slices.Sort(services.Services)
	return services.Services
}

// Search returns the traces in which a service has spans, as the page of searches receives them: at
// most so many, the latest ones.
func (s *Server) Search(t testing.TB, service string, most int) []Trace {
	t.Helper()
	var found struct{ Data []Trace }
	// Times are microseconds: all there are.
	all := url.Values{
		"service": {service}, "limit": {strconv.Itoa(most)},
		"start": {"1"}, "end": {strconv.FormatInt(time.Now().Add(24*time.Hour).UnixMicro(), 10)},
	}
	if err := s.get("/api/traces", all, &found); err != nil {
		t.Fatal(err)
	}
	return found.Data
}

// Trace returns a trace by its ID in hexadecimal digits.
func (s *Server) Trace(t testing.TB, id string) ptrace.Traces {
	t.Helper()
	var answer struct{ Result json.RawMessage }
	if err := s.get("/api/v3/traces/"+id, nil, &answer); err != nil {
		t.Fatal(err)
	}
	traces, err := new(ptrace.JSONUnmarshaler).UnmarshalTraces(answer.Result)
	if err != nil {
		t.Fatalf("trace %s: %v", id, err)
	}
	return traces
}

// get asks the API for data.
func (s *Server) get(path string, parameters url.Values, data any) error {
	response, err := client.Get("http://" + s.query + path + "?" + parameters.Encode())
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: expected 200 OK, got %s: %.200q", path, response.Status, body)
	}
	if err := json.Unmarshal(body, data); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
