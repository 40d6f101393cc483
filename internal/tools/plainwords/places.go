// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// place is a set of files with texts of one kind.
type place struct {
	// globs are paths below the root. "dir/..." stands for all Go files below dir, except generated code and testdata.
	globs []string
	// except are files that the globs also match, each with the reason in a comment.
	except []string
	// extract returns the texts of a file's content.
	extract func(content string) ([]text, error)
}

// places has all texts that users see, and all that readers of the code see.
var places = []place{
	{globs: []string{
		"README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/*.md", "cmd/agentsim/README.md",
		"receiver/*/README.md", "processor/*/README.md", "exporter/*/README.md", "extension/*/README.md",
	}, except: []string{
		"docs/configuration.md", // generated from texts that are checked
	}, extract: prose},
	{globs: []string{"CHANGELOG.md"}, extract: unreleased},
	{globs: []string{
		"receiver/*/metadata.yaml", "processor/*/metadata.yaml", "exporter/*/metadata.yaml", "extension/*/metadata.yaml",
		"internal/agentcontrol/api/openapi.yaml", "config/*.yaml", "packaging/*.yaml", "packaging/*.service",
		"packaging/*.conf", "packaging/*.1", "packaging/scripts/*", "packaging/Dockerfile",
	}, extract: whole},
	{globs: []string{"extension/*/pages/*.html", "exporter/*/internal/web/pages/*.html"}, extract: page},
	{globs: goCode, except: quoting, extract: literals},
	{globs: goCode, except: quoting, extract: comments},
}

// goCode has all Go files, tests included, and quoting those that quote the patterns.
var (
	goCode  = []string{"cmd/...", "exporter/...", "extension/...", "internal/...", "processor/...", "receiver/...", "test/..."}
	quoting = []string{"internal/tools/plainwords/patterns.go", "internal/tools/plainwords/places.go", "internal/tools/plainwords/plainwords_test.go"}
)

// allowed are parts of texts that stay, by file, each with the reason in a comment.
var allowed = map[string][]string{
	// A value of the attribute reason, which users query.
	"receiver/bytefrogreceiver/metadata.yaml": {"max_connections_per_address, unheard, max_runs"},
}

// isAllowed reports whether an offset in a content of a file is inside an allowed part.
func isAllowed(file, content string, at int) bool {
	return slices.ContainsFunc(allowed[file], func(part string) bool {
		begin := strings.LastIndex(content[:min(at+len(part), len(content))], part)
		return begin >= 0 && begin <= at && at < begin+len(part)
	})
}

// files returns the paths of a place below root, sorted, with slashes.
func (p place) files(root string) ([]string, error) {
	var files []string
	for _, glob := range p.globs {
		found, err := matches(root, glob)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("expected files for %s in places.go, got none", glob)
		}
		for _, file := range found {
			if !slices.Contains(p.except, file) {
				files = append(files, file)
			}
		}
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

// matches returns the paths below root that a glob or "dir/..." matches.
func matches(root, glob string) (files []string, err error) {
	if dir, all := strings.CutSuffix(glob, "/..."); all {
		err = filepath.WalkDir(filepath.Join(root, dir), func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && entry.Name() == "testdata":
				return fs.SkipDir
			case strings.HasSuffix(path, ".go") && !strings.HasPrefix(entry.Name(), "generated_"):
				files = append(files, path)
			}
			return nil
		})
	} else {
		files, err = filepath.Glob(filepath.Join(root, glob))
	}
	for i := range files {
		relative, relativeErr := filepath.Rel(root, files[i])
		if relativeErr != nil {
			return nil, relativeErr
		}
		files[i] = filepath.ToSlash(relative)
	}
	return files, err
}
