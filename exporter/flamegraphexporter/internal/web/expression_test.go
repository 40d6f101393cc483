// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/exporter/flamegraphexporter/internal/pprofpages"
	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/call/treeformat"
)

// allExpressions are pprof's parameters with expressions.
var allExpressions = []string{"f", "i", "h", "s", "sf", "prunefrom"}

func TestExpressionsThatAreTooLargeAreRefused(t *testing.T) {
	h := serve(playing("shop", "f"))
	for what, text := range map[string]string{
		"repeated":             `(.?){1000}(.?){1000}~`,
		"repeated in repeated": `((a{5}b){5}c?){30}`,
		"repeated at least":    strings.Repeat(`(a|b){900,}`, 2),
		"long":                 strings.Repeat("a", maxExpression+1),
		"of many parts":        strings.Repeat("(a?|.)", 400),
	} {
		for _, parameter := range allExpressions {
			for _, page := range []string{"flamegraph", pprofpages.Top, pprofpages.Peek} {
				w := get(t, h, "/services/shop/ui/"+page+"?"+url.Values{parameter: {text}}.Encode())
				assert.Equal(t, http.StatusBadRequest, w.Code, "%s: %s=%s", page, parameter, what)
				assert.Contains(t, w.Body.String(), parameter+": expected an expression of at most", what)
			}
		}
	}
}

func TestTheErrorOfALargeExpressionHasItsSize(t *testing.T) {
	for text, want := range map[string]string{
		strings.Repeat("a", maxExpression+1): "got about 2002",
		`(.?){600}~`:                         "got about 2403",
		strings.Repeat(`(a|b){1000}`, 700):   "got about 1000000",
	} {
		_, err := newExpression(text)
		assert.ErrorContains(t, err, want)
	}
}

func TestNamesAreExpressions(t *testing.T) {
	name := strings.Repeat("名.", 1024/4)
	h := serve(playing("shop", name))
	for _, parameter := range []string{queryFocus, queryShow, queryShowFrom} {
		query := url.Values{parameter: {"^" + regexp.QuoteMeta(name) + "$"}}
		require.Less(t, len(query.Encode()), maxQuery)
		assert.Contains(t, page(t, h, "/services/shop/ui/flamegraph?"+query.Encode()), name, parameter)
	}
}

func TestStacksHaveNoLabels(t *testing.T) {
	h := serve(playing("shop", "f"))
	for _, parameter := range queryTags {
		assert.Equal(t, http.StatusBadRequest, get(t, h, "/services/shop/ui/top?"+parameter+"=a").Code, parameter)
	}
}

// counted is a context that ends when it was looked at so often.
type counted struct {
	context.Context
	left int
}

func (c *counted) Err() error {
	if c.left--; c.left < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// TestMatchingEndsWithItsTime has a context that ends between two names.
func TestMatchingEndsWithItsTime(t *testing.T) {
	s := shop("shop", calltree.Calls, "f")
	for _, parameter := range allExpressions {
		names := 0
		for ; ; names++ {
			ctx := &counted{t.Context(), names}
			query := url.Values{parameter: {"f"}}
			if _, err := profileFor(ctx, "peek", query, s); err == nil {
				break
			}
			require.Less(t, ctx.left, 0)
			require.Less(t, names, 100)
		}
		assert.GreaterOrEqual(t, names, 4, "%s: each name is a time to end", parameter)
	}
}

func TestSlowExpressionsAreAnError(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errSlow)
	_, err := profileFor(ctx, "top", url.Values{"h": {"f"}}, shop("shop", calltree.Calls, "f"))
	assert.ErrorContains(t, err, "take longer than 3s")
	assert.True(t, errors.As(err, new(badRequest)))
}

func TestANameThatIsTooLongForAnExpressionIsNotMatched(t *testing.T) {
	e, err := newExpression(strings.Repeat("a?", 600))
	require.NoError(t, err)
	for length, want := range map[int]bool{1024: true, 1 << 20: false} {
		_, err := e.within(t.Context())(strings.Repeat("a", length))
		assert.Equal(t, want, err == nil, length)
	}
	p := treeformat.Profile(shop("shop", calltree.Calls, "f"))
	require.NoError(t, e.checkTime(t.Context(), p))
	long, line := strings.Repeat("a", 1<<20), p.Location[0].Line[0]
	for what, text := range map[string]*string{
		"function": &line.Function.Name, "file": &line.Function.Filename, "object": &p.Location[0].Mapping.File,
	} {
		before := *text
		*text = long
		assert.ErrorContains(t, e.checkTime(t.Context(), p), "too long for names", what)
		*text = before
	}
}
