// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"regexp"
	"strings"
)

// patterns are the patterns of sessions to read.
type patterns []*regexp.Regexp

// compilePatterns compiles texts in which * stands for anything and ? for one character.
func compilePatterns(texts []string) patterns {
	compiled := make(patterns, len(texts))
	for i, text := range texts {
		text = regexp.QuoteMeta(text)
		text = strings.ReplaceAll(text, `\*`, `.*`)
		text = strings.ReplaceAll(text, `\?`, `.`)
		compiled[i] = regexp.MustCompile(`^(?s:` + text + `)$`)
	}
	return compiled
}

// match reports whether a session of that name, host/name, is to be read.
func (p patterns) match(name string) bool {
	for _, pattern := range p {
		if pattern.MatchString(name) {
			return true
		}
	}
	return false
}
