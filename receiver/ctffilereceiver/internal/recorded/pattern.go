// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package recorded

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Pattern matches paths. Its parts between slashes are those of path.Match, and ** matches any number of parts.
type Pattern struct {
	text  string
	parts []string
	// fixed is the number of parts before the first one with a wildcard.
	fixed int
}

// anyParts is the part that matches any number of parts.
const anyParts = "**"

// ParsePattern returns a pattern of absolute paths. A relative one begins in the working directory.
func ParsePattern(text string) (Pattern, error) {
	if text == "" {
		return Pattern{}, errors.New("expected a path, got none")
	}
	if text == "~" || strings.HasPrefix(text, "~/") {
		return Pattern{}, errors.New("expected a path without ~, which the receiver does not expand: write ${env:HOME}")
	}
	absolute, err := filepath.Abs(text)
	if err != nil {
		return Pattern{}, err
	}
	p := Pattern{text: text, parts: split(absolute)}
	for _, part := range p.parts {
		if _, err := path.Match(part, ""); err != nil {
			return Pattern{}, fmt.Errorf("%q: %w", part, err)
		}
	}
	if p.fixed = slices.IndexFunc(p.parts, isWild); p.fixed < 0 {
		p.fixed = len(p.parts)
	}
	return p, nil
}

// split returns the parts of an absolute path.
func split(absolute string) []string {
	return strings.FieldsFunc(filepath.ToSlash(absolute), func(r rune) bool { return r == '/' })
}

func isWild(part string) bool { return strings.ContainsAny(part, `*?[\`) }

// root returns the path without wildcards, below which all matches are.
func (p *Pattern) root() string {
	joined := strings.Join(p.parts[:p.fixed], "/")
	if filepath.Separator == '/' {
		joined = "/" + joined
	}
	return filepath.FromSlash(joined)
}

// Match reports whether an absolute path, or a directory above it, matches.
func (p *Pattern) Match(name string) bool { return matchParts(p.parts, split(name)) }

// matchParts reports whether the parts of a pattern match the first parts of a name. It follows all ways at the same
// time, so that a pattern with many wildcards takes no longer.
func matchParts(pattern, name []string) bool {
	// at[i] is set if the first i parts of the pattern match the parts of the name so far.
	at, next := make([]bool, len(pattern)+1), make([]bool, len(pattern)+1)
	at[0] = true
	skipAny(pattern, at)
	for _, part := range name {
		if at[len(pattern)] {
			return true
		}
		clear(next)
		for i, of := range pattern {
			if !at[i] {
				continue
			}
			if of == anyParts {
				next[i] = true
			} else if ok, _ := path.Match(of, part); ok {
				next[i+1] = true
			}
		}
		skipAny(pattern, next)
		at, next = next, at
	}
	return at[len(pattern)]
}

// skipAny lets each ** match no part.
func skipAny(pattern []string, at []bool) {
	for i, of := range pattern {
		if of == anyParts && at[i] {
			at[i+1] = true
		}
	}
}
