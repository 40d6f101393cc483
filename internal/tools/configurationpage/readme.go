// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// row is one of the table of settings in a component's README.md: of one setting, or of some
// that are described together.
type row struct {
	// names are as they are written, in whole.
	names []string
	// title, fallback and meaning are the cells.
	title, fallback, meaning string
}

const (
	chapter = "\n## Settings\n"
	columns = 3
	// everywhere is the beginning of a name that stands for settings in all lists, such as ….class.
	everywhere = "…."
)

var code = regexp.MustCompile("`([^`]+)`")

// readRows are the rows of the table in the README.md of a directory.
func readRows(directory string) ([]row, error) {
	text, err := os.ReadFile(filepath.Join(directory, "README.md"))
	if err != nil {
		return nil, err
	}
	_, settings, found := strings.Cut(string(text), chapter)
	if !found {
		return nil, fmt.Errorf("README.md: expected a chapter %q", strings.TrimSpace(chapter))
	}
	var rows []row
	for line := range strings.Lines(settings) {
		if !strings.HasPrefix(line, "|") {
			if len(rows) > 0 {
				break // the table has ended
			}
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != columns {
			return nil, fmt.Errorf("README.md: expected %d cells, got %d: %s", columns, len(cells), line)
		}
		r := row{title: strings.TrimSpace(cells[0]), fallback: strings.TrimSpace(cells[1]), meaning: strings.TrimSpace(cells[2])}
		r.names = namesIn(r.title)
		if len(r.names) > 0 { // else it is the head
			rows = append(rows, r)
		}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("README.md: expected a table of settings below %q", strings.TrimSpace(chapter))
	}
	return rows, nil
}

// namesIn returns the names in a cell. A name that begins with a dot is beside the one before it.
func namesIn(cell string) (names []string) {
	for _, found := range code.FindAllStringSubmatch(cell, -1) {
		name := found[1]
		if strings.HasPrefix(name, ".") && len(names) > 0 {
			before := names[len(names)-1]
			name = before[:strings.LastIndex(before, ".")] + name
		}
		names = append(names, name)
	}
	return names
}

var link = regexp.MustCompile(`\]\(([^)]+)\)`)

// relinked is a text of a directory's README.md with links that lead from docs/ to the same.
func relinked(text, directory string) string {
	return link.ReplaceAllStringFunc(text, func(found string) string {
		target := found[2 : len(found)-1]
		switch {
		case strings.Contains(target, "://"):
			return found
		case strings.HasPrefix(target, "#"):
			return "](../" + directory + "/README.md" + target + ")"
		}
		to := path.Join(directory, target)
		if inDocs, beside := strings.CutPrefix(to, "docs/"); beside {
			return "](" + inDocs + ")"
		}
		return "](../" + to + ")"
	})
}
