// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysserver

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/callbraid/callbraid/internal/greys"
)

// matcher returns an expression for whole names that match a pattern. It fails for an invalid regular expression.
func matcher(p greys.Pattern, isRegexp bool) (*regexp.Regexp, error) {
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
