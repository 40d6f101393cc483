// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/callbraid/callbraid/internal/componentkit/figures"
)

// topMethods is the number of printed methods.
const topMethods = 10

func (s *summary) print(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range []struct {
		name  string
		count uint64
		note  string
	}{
		{"spans", s.spans, ""},
		{"traces", uint64(len(s.traces)), ""},
		{"methods", uint64(len(s.methods)), ""},
		{"threads", uint64(len(s.threads)), ""},
		{"errors", s.errors, "left by an exception"},
		{"truncated", s.truncatedFrames(), s.causes()},
	} {
		fmt.Fprintf(table, "%s\t%s\t", row.name, figures.Count(row.count))
		if row.note != "" {
			fmt.Fprintf(table, "  %s", row.note)
		}
		fmt.Fprintln(table)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nThe %d methods with most self time (without the methods they call):\n\n", topMethods)
	table = tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "self\ttotal\tcalls\terrors\t  method")
	for _, m := range s.top(topMethods) {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t  %s\n", duration(m.self), duration(m.total),
			figures.Count(m.calls), figures.Count(m.errors), m.name)
	}
	return table.Flush()
}

func (s *summary) truncatedFrames() uint64 {
	var n uint64
	for _, count := range s.truncated {
		n += count
	}
	return n
}

// causes lists the causes of truncation with their counts.
func (s *summary) causes() string {
	var parts []string
	for _, cause := range slices.Sorted(maps.Keys(s.truncated)) {
		parts = append(parts, fmt.Sprintf("%s: %s", cause, figures.Count(s.truncated[cause])))
	}
	return strings.Join(parts, ", ")
}

// duration writes a time in the tracer's unit, milliseconds.
func duration(d time.Duration) string {
	return fmt.Sprintf("%.0f ms", float64(d)/float64(time.Millisecond))
}
