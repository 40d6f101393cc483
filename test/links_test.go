// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Links in pages work, and the README leads to each page of docs/.

var (
	pageLink   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	pageTitle  = regexp.MustCompile(`(?m)^#+ (.*)$`)
	pageFences = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	// notInAnchor are the characters of a title that GitHub removes from its anchor.
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N}\-_ ]`)
)

// pagesOf returns the pages below a directory of the project, without build results.
func pagesOf(t *testing.T, project string) (pages []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(project, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (filepath.Dir(path) == project && (strings.HasPrefix(entry.Name(), ".") && entry.Name() != ".." ||
			strings.HasPrefix(entry.Name(), "build") || entry.Name() == "bin" || entry.Name() == "dist")) {
			return fs.SkipDir
		}
		if strings.HasSuffix(path, ".md") {
			pages = append(pages, path)
		}
		return nil
	}))
	return pages
}

// prose returns a page without its code blocks.
func prose(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	return pageFences.ReplaceAllString(string(text), "")
}

// anchorsOf are the anchors of a page.
func anchorsOf(t *testing.T, page string) map[string]bool {
	t.Helper()
	anchors := map[string]bool{}
	for _, title := range pageTitle.FindAllStringSubmatch(prose(t, page), -1) {
		anchors[strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(title[1]), ""), " ", "-")] = true
	}
	return anchors
}

// brokenLinks are the links of pages without a target, and linked the targets of the others.
func brokenLinks(t *testing.T, pages []string) (broken []string, linked map[string][]string) {
	t.Helper()
	linked = map[string][]string{}
	for _, page := range pages {
		for _, found := range pageLink.FindAllStringSubmatch(prose(t, page), -1) {
			if strings.Contains(found[1], "://") {
				continue
			}
			to, anchor, anchored := strings.Cut(found[1], "#")
			target := page
			if to != "" {
				target = filepath.Join(filepath.Dir(page), to)
			}
			if _, err := os.Stat(target); err != nil {
				broken = append(broken, page+": "+found[1])
				continue
			}
			linked[page] = append(linked[page], target)
			if info, err := os.Stat(filepath.Join(target, "README.md")); err == nil && !info.IsDir() {
				target = filepath.Join(target, "README.md")
			}
			if anchored && !anchorsOf(t, target)[anchor] {
				broken = append(broken, page+": "+found[1]+", which has no such title")
			}
		}
	}
	return broken, linked
}

func TestLinksOfPagesWork(t *testing.T) {
	pages := pagesOf(t, "..")
	require.Contains(t, pages, "../docs/architecture.md")
	broken, linked := brokenLinks(t, pages)
	assert.Empty(t, broken)
	for _, page := range pages {
		if filepath.Dir(page) == "../docs" {
			assert.Contains(t, linked["../README.md"], page, "the README leads to each page")
		}
	}
}

func TestABrokenLinkIsNoticed(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b.md"), []byte("# It's `there`: see\n\n```\n# not here\n```\n"), 0o600))
	page := filepath.Join(dir, "a.md")
	require.NoError(t, os.WriteFile(page, []byte("[b](b.md) [there](b.md#its-there-see) [web](https://x/y)\n"+
		"[c](c.md) [not](b.md#not-here) [here](#here)\n"), 0o600))
	broken, _ := brokenLinks(t, []string{page})
	assert.Equal(t, []string{page + ": c.md", page + ": b.md#not-here, which has no such title", page + ": #here, which has no such title"}, broken)
}
