// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Command plainwords finds words that readers of Callbraid had to read twice, and prints the plain word for each.
// It reads all texts that users see: pages, metric descriptions, configurations, web pages, and the string literals of
// Go code. It also reads all comments of Go code. `make lint` runs it.
//
//	plainwords ROOT
//
// Each finding is one line: file:line, the words, and the words to use. The exit code is 1 if there is a finding.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: plainwords ROOT")
		os.Exit(2)
	}
	findings, err := check(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "plainwords:", err)
		os.Exit(2)
	}
	for _, f := range findings {
		fmt.Println(f)
	}
	if len(findings) > 0 {
		os.Exit(1)
	}
}

// finding is one use of a pattern.
type finding struct {
	file    string
	line    int
	words   string
	instead string
}

func (f finding) String() string {
	return fmt.Sprintf("%s:%d: %q: write %s", f.file, f.line, f.words, f.instead)
}

// check returns the findings in all places below root, in the order of places and lines. It returns an error if a file
// cannot be read, or if a pattern of places matches no file.
func check(root string) ([]finding, error) {
	var findings []finding
	for _, p := range places {
		files, err := p.files(root)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			lines, err := p.texts(root, file)
			if err != nil {
				return nil, err
			}
			for _, l := range lines {
				findings = append(findings, findingsIn(file, l)...)
			}
		}
	}
	return findings, nil
}

// findingsIn returns the findings of one piece of text. It leaves out those that allowed names.
func findingsIn(file string, t text) []finding {
	var findings []finding
	for _, p := range patterns {
		for _, at := range p.expression.FindAllStringIndex(t.content, -1) {
			if !isAllowed(file, t.content, at[0]) {
				findings = append(findings, finding{file, t.lineAt(at[0]), t.content[at[0]:at[1]], p.instead})
			}
		}
	}
	return findings
}
