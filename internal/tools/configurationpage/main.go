// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Command configurationpage writes docs/configuration.md: all settings and all metrics of all
// components. The metadata.yaml of a component describes it and its metrics. Its factory has the
// settings with type and default, its validation the ranges, and the table in its README.md the
// meanings. If these don't agree, the command writes nothing. From the same sources it writes a JSON
// schema of configurations, with which editors find wrong settings.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

//go:generate go run . ../../.. ../../../docs/configuration.md ../../../config/schema.json

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: configurationpage PROJECT PAGE SCHEMA")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "configurationpage:", err)
		os.Exit(1)
	}
}

// write writes the page and the schema of the project that is in a directory.
func write(project, pagePath, schemaPath string) error {
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
	schema, err := schemaOf(project)
	if err != nil {
		return err
	}
	if err := os.WriteFile(schemaPath, schema, 0o644); err != nil {
		return err
	}
	return os.WriteFile(pagePath, []byte(page.String()), 0o644)
}
