// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Command configurationpage writes docs/configuration.md: all settings and all metrics of all
// components. What a component is and which metrics it has is said by its metadata.yaml, which
// settings there are, of which type and with which default, by its factory, what they may be by
// its validation, and what they mean by the table in its README.md. Where these don't agree
// nothing is written.
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
