// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Command manifests writes the builder's manifests of the gateway's and the small distribution from that of the ordinary
// one. The builder accepts only one file, and files with a common part would have to be changed together.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

//go:generate go run . ../../..

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: manifests FOLDER")
		os.Exit(2)
	}
	if err := writeAll(os.Args[1], os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "manifests:", err)
		os.Exit(1)
	}
}

// writeAll reads the ordinary manifest in a folder, and writes the others into another.
func writeAll(from, to string) error {
	path := filepath.Join(from, "builder-config.yaml")
	ordinary, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for name, of := range map[string]func(string) (string, error){"gateway": gateway, "small": small} {
		manifest, err := of(string(ordinary))
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := os.WriteFile(filepath.Join(to, "builder-config-"+name+".yaml"), []byte(manifest), 0o644); err != nil {
			return err
		}
	}
	return nil
}
