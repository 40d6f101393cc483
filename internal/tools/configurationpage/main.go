// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Command configurationpage writes docs/configuration.md: all settings and all metrics of all
// components. The metadata.yaml of a component describes it and its metrics. Its factory has the
// settings with type and default, its validation the ranges, and the table in its README.md the
// meanings. If these don't agree, the command writes nothing.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

//go:generate go run . ../../.. ../../../docs/configuration.md

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: configurationpage PROJECT TO")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "configurationpage:", err)
		os.Exit(1)
	}
}

// write writes the page of the project that is in a directory.
func write(project, to string) error {
	manifest, err := os.ReadFile(filepath.Join(project, "builder-config.yaml"))
	if err != nil {
		return err
	}
	if err := complete(string(manifest)); err != nil {
		return err
	}
	var page strings.Builder
	page.WriteString(head)
	for _, c := range components {
		section, err := c.section(project)
		if err != nil {
			return fmt.Errorf("%s: %w", c.directory, err)
		}
		page.WriteString(section)
	}
	return os.WriteFile(to, []byte(page.String()), 0o644)
}
