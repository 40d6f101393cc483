// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Command monitoring writes Grafana's dashboards and Prometheus' alert rules. The tables of this package have their panels and
// rules. Grafana's own library gives the dashboards their form.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

//go:generate go run . ../../../packaging

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: monitoring PACKAGING")
		os.Exit(2)
	}
	if err := writeAll(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "monitoring:", err)
		os.Exit(1)
	}
}

// writeAll writes all files below a directory.
func writeAll(packaging string) error {
	dashboards, rules := filepath.Join(packaging, "grafana"), filepath.Join(packaging, "prometheus")
	failed := errors.Join(os.MkdirAll(dashboards, 0o755), os.MkdirAll(rules, 0o755))
	for _, b := range boards {
		failed = errors.Join(failed, b.write(filepath.Join(dashboards, b.name+".json")))
	}
	return errors.Join(failed, writeRules(filepath.Join(rules, "alerts.yaml")))
}

// write writes the file of a dashboard.
func (b board) write(path string) error {
	built, err := b.build()
	if err != nil {
		return fmt.Errorf("%s: %w", b.name, err)
	}
	text, err := json.MarshalIndent(built, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", b.name, err)
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
