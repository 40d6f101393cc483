// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysserver

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// matchers returns expressions for the classes and the methods of a target.
func matchers(t javamethods.Target) (classes, methods *regexp.Regexp, err error) {
	classes, err = matcher(t.Class, t.Regexp)
	if err == nil {
		methods, err = matcher(t.Method, t.Regexp)
	}
	return classes, methods, err
}

// matcher returns an expression for whole names that match a pattern. It fails for an invalid regular expression.
func matcher(p javamethods.Pattern, isRegexp bool) (*regexp.Regexp, error) {
	text := p.String()
	if !isRegexp {
		text = strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(text))
	}
	m, err := regexp.Compile("^(?s:" + text + ")$")
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", p, err)
	}
	return m, nil
}
