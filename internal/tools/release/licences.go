// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/module"
)

// notices are the names of files with the licence conditions of modules.
var notices = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|unlicense|copyright)([-._].*)?$`)

// scripts are the folders with packages of npm that are compiled into the collector.
var scripts = []string{"exporter/flamegraphexporter/internal/speedscope", "exporter/flamegraphexporter/internal/d3flamegraph"}

// writeLicences writes the licences and notices of all modules that programs were built
// from, as Go's module cache has them, of Go itself, and of the scripts.
func writeLicences(path string, c *contents) error {
	said, err := exec.Command("go", "env", "GOMODCACHE", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	cache, root, _ := strings.Cut(strings.TrimSpace(string(said)), "\n")
	var all bytes.Buffer
	if err := addLicences(&all, "Go "+c.golang, root); err != nil {
		return err
	}
	for _, m := range c.modules {
		escaped, err := module.EscapePath(m.Path)
		if err != nil {
			return err
		}
		version, err := module.EscapeVersion(m.Version)
		if err != nil {
			return err
		}
		if err := addLicences(&all, m.Path+" "+m.Version, filepath.Join(cache, escaped+"@"+version)); err != nil {
			return err
		}
	}
	for _, folder := range scripts {
		text, err := os.ReadFile(filepath.Join(folder, "licences.txt"))
		if err != nil {
			return err
		}
		all.Write(text)
	}
	return os.WriteFile(path, all.Bytes(), 0o644)
}

func addLicences(to *bytes.Buffer, name, folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	found := false
	for _, entry := range entries {
		if entry.IsDir() || !notices.MatchString(entry.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return err
		}
		found = true
		fmt.Fprintf(to, "==== %s: %s\n\n%s\n\n", name, entry.Name(), bytes.TrimSpace(text))
	}
	if !found {
		return fmt.Errorf("%s: expected a file with its licence in %s, found none", name, folder)
	}
	return nil
}
