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

// metadata is as much of a component's metadata.yaml as the page says.
type metadata struct {
	Type        string
	Description string
	Status      struct {
		Class     string
		Stability map[string][]string
	}
	// Metrics are what a component hands on.
	Metrics map[string]metric
	// Telemetry is what it says of itself.
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

// stability says for what the component is how stable.
func (m metadata) stability() string {
	var all []string
	for _, level := range slices.Sorted(maps.Keys(m.Status.Stability)) {
		all = append(all, level+" for "+strings.Join(m.Status.Stability[level], ", "))
	}
	return strings.Join(all, "; ")
}

// kind is what one can do with the values of a metric.
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
