// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// metadata is the part of a component's metadata.yaml that the page needs.
type metadata struct {
	Type        string
	Description string
	Status      struct {
		Class     string
		Stability map[string][]string
	}
	// Metrics are metrics that a component sends to pipelines.
	Metrics map[string]metric
	// Telemetry has the metrics about the component itself.
	Telemetry struct{ Metrics map[string]metric }
}

type metric struct {
	Description, Unit     string
	Sum, Gauge, Histogram *struct{ Monotonic bool }
}

func readMetadata(directory string) (m metadata, err error) {
	text, err := os.ReadFile(filepath.Join(directory, "metadata.yaml"))
	if err != nil {
		return m, err
	}
	if err := yaml.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("metadata.yaml: %w", err)
	}
	return m, nil
}

// stability returns the stability of the component's signals.
func (m metadata) stability() string {
	var all []string
	for _, level := range slices.Sorted(maps.Keys(m.Status.Stability)) {
		all = append(all, level+" for "+strings.Join(m.Status.Stability[level], ", "))
	}
	return strings.Join(all, "; ")
}

// kind returns the kind of a metric's values.
func (m metric) kind() string {
	switch {
	case m.Histogram != nil:
		return "histogram"
	case m.Gauge != nil:
		return "gauge"
	case m.Sum != nil && m.Sum.Monotonic:
		return "counter"
	default:
		return "sum"
	}
}
