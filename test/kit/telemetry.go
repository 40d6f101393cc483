// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/callbraid/callbraid/internal/testkit"
)

// Metric is the sum of the series of the collector's own metric of that name that have all the
// given labels, each written as `name="value"`. It is 0 without such a series: unused counters are
// not shown.
func (c *Collector) Metric(t testing.TB, name string, labels ...string) float64 {
	t.Helper()
	sum, err := c.metric(name, labels)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// Look is the collector's own metrics at one time.
type Look struct {
	t    testing.TB
	text string
}

// Look reads all of the collector's own metrics together. A busy collector may need some time.
func (c *Collector) Look(t testing.TB) (look Look) {
	t.Helper()
	testkit.Eventually(t, "the collector shows its metrics", func() (bool, string) {
		text, err := get("http://" + c.metrics + "/metrics")
		if err != nil {
			return false, err.Error()
		}
		look = Look{t, text}
		return true, ""
	})
	return look
}

// Sum is Metric at that time.
func (l Look) Sum(name string, labels ...string) float64 {
	l.t.Helper()
	sum, err := sumOf(l.text, name, labels)
	if err != nil {
		l.t.Fatal(err)
	}
	return sum
}

// AwaitMetric waits until Metric is at least that much.
func (c *Collector) AwaitMetric(t testing.TB, least float64, name string, labels ...string) {
	t.Helper()
	testkit.Eventually(t, fmt.Sprintf("metric %s %v of at least %v", name, labels, least), func() (bool, string) {
		sum, err := c.metric(name, labels)
		if err != nil {
			return false, err.Error()
		}
		return sum >= least, fmt.Sprint(sum)
	})
}

func (c *Collector) metric(name string, labels []string) (sum float64, err error) {
	text, err := get("http://" + c.metrics + "/metrics")
	if err != nil {
		return 0, err
	}
	return sumOf(text, name, labels)
}

// sumOf adds up series of the Prometheus text format.
func sumOf(text, name string, labels []string) (sum float64, err error) {
	for line := range strings.Lines(text) {
		series, value, ok := cutLast(strings.TrimSpace(line), " ")
		metric, list, _ := strings.Cut(series, "{")
		// The format's older suffix for counters.
		if !ok || strings.HasPrefix(line, "#") || metric != name && metric != name+"_total" {
			continue
		}
		matches := true
		for _, label := range labels {
			matches = matches && strings.Contains(list, label)
		}
		if !matches {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("metric %s: %w", series, err)
		}
		sum += n
	}
	return sum, nil
}

func cutLast(s, separator string) (before, after string, ok bool) {
	i := strings.LastIndex(s, separator)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(separator):], true
}

// MemoryInUse is the memory of the collector's objects that are in use, in bytes. It lets the collector collect its garbage first, twice:
// pools keep theirs for one collection.
func (c *Collector) MemoryInUse(t testing.TB) uint64 {
	t.Helper()
	var text string
	for range 2 {
		var err error
		if text, err = get("http://" + c.pprof + "/debug/pprof/heap?gc=1&debug=1"); err != nil {
			t.Fatal(err)
		}
	}
	const field = "\n# HeapAlloc = "
	_, after, found := strings.Cut(text, field)
	bytes, err := strconv.ParseUint(after[:max(0, strings.IndexByte(after, '\n'))], 10, 64)
	if !found || err != nil {
		t.Fatalf("expected %q with a number in the heap's profile, got: %v", field, err)
	}
	return bytes
}

// Goroutines is how many goroutines the collector has.
func (c *Collector) Goroutines(t testing.TB) int {
	t.Helper()
	text := c.goroutines(t)
	var n int
	if _, err := fmt.Sscanf(text, "goroutine profile: total %d", &n); err != nil {
		t.Fatalf("expected the number of goroutines, got %.100q", text)
	}
	return n
}

// GoroutinesOf is the number of the collector's goroutines whose stacks have a text, such as the
// path of a package.
func (c *Collector) GoroutinesOf(t testing.TB, text string) (sum int) {
	t.Helper()
	_, stacks, _ := strings.Cut(c.goroutines(t), "\n")
	for stack := range strings.SplitSeq(stacks, "\n\n") {
		if !strings.Contains(stack, text) {
			continue
		}
		var n int
		if _, err := fmt.Sscanf(stack, "%d @", &n); err != nil {
			t.Fatalf("expected a number of goroutines with a stack, got %.100q", stack)
		}
		sum += n
	}
	return sum
}

func (c *Collector) goroutines(t testing.TB) string {
	t.Helper()
	text, err := get("http://" + c.pprof + "/debug/pprof/goroutine?debug=1")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func get(url string) (string, error) {
	response, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", fmt.Errorf("%s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: expected 200 OK, got %s: %.3000s", url, response.Status, body)
	}
	return string(body), nil
}
