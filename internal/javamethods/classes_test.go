// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package javamethods

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func patternOf(t testing.TB, text string) Pattern {
	t.Helper()
	p, err := NewPattern(text)
	require.NoError(t, err)
	return p
}

func TestTwoPatternsOverlapWhereBothMayNameAClass(t *testing.T) {
	for _, test := range []struct {
		a, b    string
		overlap bool
	}{
		{"demo.Shop", "demo.Shop", true},
		{"demo.Shop", "demo.Pay", false},
		{"demo.*", "demo.Shop", true},
		{"demo.*", "other.*", false},
		{"*", "demo.Shop", true},
		{"*.Shop", "demo.*", true},
		{"*Shop", "*Pay", false},
		{"demo.?", "demo.Shop", false},
		{"demo.????", "demo.Shop", true},
		{"demo.**Shop", "demo.Shop", true},
		{`demo.\*`, "demo.Shop", false},
		{`demo.\*`, "demo.*", true},
		{`demo.\?`, "demo.?", true},
		{"a*b*c", "ac", false}, {"a*b*c", "a?c", true},
		{"a*b*c", "abc", true},
		{"demo.𝄞", "demo.??", true}, // Java stores it as two units
		{"demo.𝄞", "demo.?", false},
	} {
		a, b := Classes{Pattern: patternOf(t, test.a)}, Classes{Pattern: patternOf(t, test.b)}
		assert.Equal(t, test.overlap, a.MayOverlap(b), "%s and %s", test.a, test.b)
		assert.Equal(t, test.overlap, b.MayOverlap(a), "%s and %s", test.b, test.a)
		a.Regexp = true
		assert.True(t, a.MayOverlap(b), "a regular expression may match any class")
		assert.True(t, b.MayOverlap(a))
	}
}

// The test compares patterns with a simple matcher, on all texts of up to five letters.
func TestPatternsOverlapWhereATextMatchesBoth(t *testing.T) {
	var texts []string
	for n, last := 0, []string{""}; n <= 5; n++ {
		texts = append(texts, last...)
		var longer []string
		for _, text := range last {
			longer = append(longer, text+"a", text+"b")
		}
		last = longer
	}
	random := rand.New(rand.NewPCG(1, 2))
	draw := func() string {
		pattern := ""
		for range 1 + random.IntN(4) {
			pattern += string("ab*?"[random.IntN(4)])
		}
		return pattern
	}
	both := 0
	for range 3000 {
		a, b := draw(), draw()
		want := false
		for _, text := range texts {
			want = want || obviouslyMatches(a, text) && obviouslyMatches(b, text)
			assert.Equal(t, obviouslyMatches(a, text), patternOf(t, a).Matches(text), "%s and %q", a, text)
		}
		if want {
			both++
		}
		assert.Equal(t, want, Classes{Pattern: patternOf(t, a)}.MayOverlap(Classes{Pattern: patternOf(t, b)}), "%s and %s", a, b)
	}
	assert.Greater(t, both, 500)
	assert.Less(t, both, 2500)
}

func obviouslyMatches(pattern, text string) bool {
	if pattern == "" {
		return text == ""
	}
	switch pattern[0] {
	case '*':
		return obviouslyMatches(pattern[1:], text) || text != "" && obviouslyMatches(pattern, text[1:])
	case '?':
		return text != "" && obviouslyMatches(pattern[1:], text[1:])
	default:
		return text != "" && text[0] == pattern[0] && obviouslyMatches(pattern[1:], text[1:])
	}
}
