// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"net/url"
	"regexp"
	"regexp/syntax"
	"time"

	"github.com/google/pprof/profile"

	"github.com/callbraid/callbraid/internal/call/treeformat"
)

// Bounds of the expressions that queries have. Go's expressions take time in proportion to
// their size and to that of the name, so one match is bounded by the product, and all of a
// page together by time. The text of a function is an expression within them.
const (
	// maxExpression is how many characters, and the like, an expression may have, where
	// what is repeated counts as often.
	maxExpression = 2000
	// mostCounted is up to how many the larger ones are counted.
	mostCounted = 1_000_000
	// maxMatch is how many of these, times the bytes of a name, a match may have.
	maxMatch = 8_000_000
	// matchTime is how long a page may match names. pprof does it again, a few times.
	matchTime = 3 * time.Second
)

// errSlow is what a page fails with that matches names for longer.
var errSlow = badRequestf("the expressions take longer than %v here: expected simpler ones", matchTime)

// What pprof's pages have in their addresses for functions: which stacks are shown and
// which not, which functions are hidden and shown, and where stacks begin and end.
const (
	queryFocus    = "f"
	queryIgnore   = "i"
	queryHide     = "h"
	queryShow     = "s"
	queryShowFrom = "sf"
	queryPrune    = "prunefrom"
)

// queryExpressions are the parameters that are expressions; queryTags those for labels of
// samples, which there are none of here.
var (
	queryExpressions = []string{queryFocus, queryIgnore, queryHide, queryShow, queryShowFrom, queryPrune}
	queryTags        = []string{"tf", "ti", "ts", "th"}
)

// expression is one that names are matched with; nil: none.
type expression struct {
	*regexp.Regexp
	size int
}

// expressionsOf are those of a query, by their parameters.
func expressionsOf(query url.Values) (map[string]*expression, error) {
	for _, parameter := range queryTags {
		if query.Get(parameter) != "" {
			return nil, badRequestf("%s: stacks have no labels here", parameter)
		}
	}
	all := map[string]*expression{}
	for _, parameter := range queryExpressions {
		text := query.Get(parameter)
		if text == "" {
			continue
		}
		e, err := newExpression(text)
		if err != nil {
			return nil, badRequestf("%s: %w", parameter, err)
		}
		all[parameter] = e
	}
	return all, nil
}

// newExpression compiles an expression, once it is known to be small enough for that.
func newExpression(text string) (*expression, error) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, badRequestf("expected a regular expression: %w", err)
	}
	size := sizeOf(parsed)
	if size > maxExpression {
		return nil, badRequestf("expected an expression of at most %d characters, with those that are repeated, got about %d", maxExpression, size)
	}
	compiled, err := regexp.Compile(text)
	if err != nil {
		return nil, badRequestf("expected a regular expression: %w", err)
	}
	return &expression{compiled, size}, nil
}

// sizeOf is how large the program for an expression is, about, or mostCounted if it is larger.
func sizeOf(e *syntax.Regexp) int {
	size := 1 + len(e.Rune)
	if e.Op == syntax.OpCharClass {
		size = 1 // its characters are searched, not tried
	}
	for _, part := range e.Sub {
		size += sizeOf(part)
	}
	if e.Op == syntax.OpRepeat {
		size *= max(e.Min, e.Max, 1) // each is at most 1000
	}
	return min(size, mostCounted)
}

// within matches names for as long as the context lasts.
func (e *expression) within(ctx context.Context) treeformat.Matcher {
	if e == nil {
		return nil
	}
	return func(name string) (bool, error) {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		if e.size*len(name) > maxMatch {
			return false, badRequestf("the expression is too long for names as long as %d bytes", len(name))
		}
		return e.MatchString(name), nil
	}
}

// tryOut matches all that pprof will match, which cannot be ended once it has begun: what
// takes too long is seen here.
func (e *expression) tryOut(ctx context.Context, p *profile.Profile) error {
	match := e.within(ctx)
	for _, location := range p.Location {
		for _, line := range location.Line {
			for _, name := range []string{line.Function.Name, line.Function.Filename, location.Mapping.File} {
				if _, err := match(name); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
