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

// Bounds of the expressions in queries. The time of Go's expressions is in proportion to their size
// and that of the name. So the product bounds one match, and a time bounds all matches of a page.
// The text of a function is within these bounds as an expression.
const (
	// maxExpression bounds the characters of an expression, and other parts of it. Repeated parts
	// count as often as they repeat.
	maxExpression = 2000
	// mostCounted is up to how many the larger ones are counted.
	mostCounted = 1_000_000
	// maxMatch is how many of these, times the bytes of a name, a match may have.
	maxMatch = 8_000_000
	// matchTime is how long a page may match names. pprof does it again, a few times.
	matchTime = 3 * time.Second
)

// errSlow is the error of a page whose matching takes longer.
var errSlow = badRequestf("the expressions take longer than %v here: expected simpler ones", matchTime)

// The parameters of pprof's pages for functions: shown and ignored stacks, hidden and shown
// functions, and the beginning and end of stacks.
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

// expression matches names; nil: none.
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

// checkTime matches all names that pprof will match. pprof's matching cannot be cancelled, so
// expressions that take too long are refused here.
func (e *expression) checkTime(ctx context.Context, p *profile.Profile) error {
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
