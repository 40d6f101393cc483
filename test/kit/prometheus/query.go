// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/callbraid/callbraid/internal/testkit"
)

// Metadata is the description of a metric in its exposition.
type Metadata struct {
	// Type is counter, gauge, histogram, summary or unknown.
	Type string
	Help string
}

// sample is a series and its value now.
type sample struct {
	labels map[string]string
	value  float64
}

// Await waits until an expression of PromQL has one value, and it is that.
func (s *Server) Await(t testing.TB, expression string, want float64) {
	t.Helper()
	testkit.Eventually(t, fmt.Sprintf("%s is %v", expression, want), func() (bool, string) {
		samples, err := s.query(expression)
		if err != nil {
			return false, err.Error()
		}
		return len(samples) == 1 && samples[0].value == want, fmt.Sprint(samples)
	})
}

// Series is the number of series that an expression of PromQL has now. An expression that Prometheus refuses is an error.
func (s *Server) Series(expression string) (int, error) {
	samples, err := s.query(expression)
	return len(samples), err
}

// ByLabel are the values of an expression of PromQL by a label that each has another of.
// It waits until there are some.
func (s *Server) ByLabel(t testing.TB, expression, label string) (values map[string]float64) {
	t.Helper()
	testkit.Eventually(t, expression+" has values", func() (bool, string) {
		var err error
		values, err = s.byLabel(t, expression, label)
		return err == nil && len(values) > 0, fmt.Sprint(err)
	})
	return values
}

// AwaitByLabel waits until the values of ByLabel are these, except for errors of rounding. Several metrics of
// a target, and several targets, do not change at the same time, and a failed scrape hides its series.
func (s *Server) AwaitByLabel(t testing.TB, expression, label string, want map[string]float64) {
	t.Helper()
	testkit.Eventually(t, expression+" has the expected values", func() (bool, string) {
		got, err := s.byLabel(t, expression, label)
		if err != nil {
			return false, err.Error()
		}
		var wrong []string
		for of, value := range want {
			const rounding = 1e-9
			if g, there := got[of]; !there || math.Abs(g-value) > rounding*max(1, math.Abs(value)) {
				wrong = append(wrong, fmt.Sprintf("%s: expected %v, got %v", of, value, g))
			}
		}
		if len(wrong) > 0 || len(got) != len(want) {
			const shown = 5
			return false, fmt.Sprintf("%d values instead of %d, of which differ: %s", len(got), len(want), wrong[:min(shown, len(wrong))])
		}
		return true, ""
	})
}

func (s *Server) byLabel(t testing.TB, expression, label string) (map[string]float64, error) {
	t.Helper()
	samples, err := s.query(expression)
	if err != nil {
		return nil, err
	}
	values := map[string]float64{}
	for _, sample := range samples {
		of, ok := sample.labels[label]
		if _, twice := values[of]; twice || !ok {
			t.Fatalf("%s: expected series that differ in %s, got %v", expression, label, samples)
		}
		values[of] = sample.value
	}
	return values, nil
}

// Metadata is that of all metrics that were scraped, by their names.
func (s *Server) Metadata(t testing.TB) map[string]Metadata {
	t.Helper()
	var all map[string][]Metadata
	if err := s.get("metadata", nil, &all); err != nil {
		t.Fatal(err)
	}
	of := map[string]Metadata{}
	for name, each := range all {
		if len(each) != 1 {
			t.Fatalf("expected targets that agree on %s, got %v", name, each)
		}
		of[name] = each[0]
	}
	return of
}

// Labels are the names of all labels that the series of each metric have had in the last hour, by
// the metric's name, in order.
func (s *Server) Labels(t testing.TB) map[string][]string {
	t.Helper()
	now := time.Now()
	var series []map[string]string
	if err := s.get("series", url.Values{
		"match[]": {`{__name__=~".+"}`}, "start": {unix(now.Add(-time.Hour))}, "end": {unix(now.Add(time.Minute))},
	}, &series); err != nil {
		t.Fatal(err)
	}
	of := map[string][]string{}
	for _, labels := range series {
		name := labels["__name__"]
		delete(labels, "__name__")
		of[name] = slices.AppendSeq(of[name], maps.Keys(labels))
	}
	for name := range of {
		slices.Sort(of[name])
		of[name] = slices.Compact(of[name])
	}
	return of
}

// Exemplar is a call that a sample was made of.
type Exemplar struct {
	// Series are the labels of the series, Labels those of the exemplar: trace_id and span_id.
	Series, Labels map[string]string
	Value          float64
}

// Exemplars are those of the series of an expression of PromQL that were scraped in the last
// hour.
func (s *Server) Exemplars(t testing.TB, expression string) (exemplars []Exemplar) {
	t.Helper()
	var data []struct {
		SeriesLabels map[string]string
		Exemplars    []struct {
			Labels map[string]string
			Value  float64 `json:",string"`
		}
	}
	now := time.Now()
	if err := s.get("query_exemplars", url.Values{
		"query": {expression}, "start": {unix(now.Add(-time.Hour))}, "end": {unix(now.Add(time.Minute))},
	}, &data); err != nil {
		t.Fatal(err)
	}
	for _, series := range data {
		for _, e := range series.Exemplars {
			exemplars = append(exemplars, Exemplar{series.SeriesLabels, e.Labels, e.Value})
		}
	}
	return exemplars
}

// unix is a time as the API wants it.
func unix(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

// query asks for the value of an expression now (Prometheus, HTTP API, "Instant queries").
func (s *Server) query(expression string) (samples []sample, err error) {
	var data struct {
		ResultType string
		Result     []struct {
			Metric map[string]string
			Value  [2]any // the time in seconds, and the value as a text
		}
	}
	if err := s.get("query", url.Values{"query": {expression}}, &data); err != nil {
		return nil, err
	}
	if data.ResultType != "vector" {
		return nil, fmt.Errorf("expected a vector, got a %s", data.ResultType)
	}
	for _, r := range data.Result {
		text, _ := r.Value[1].(string)
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("value of %v: %w", r.Metric, err)
		}
		samples = append(samples, sample{r.Metric, value})
	}
	return samples, nil
}

// get asks the API for data.
func (s *Server) get(what string, parameters url.Values, data any) error {
	response, err := client.Get("http://" + s.address + "/api/v1/" + what + "?" + parameters.Encode())
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return fmt.Errorf("%s: %s: %w", what, response.Status, err)
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: %s: %s", what, response.Status, answer.Error)
	}
	if err := json.Unmarshal(answer.Data, data); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
