// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/greys"
)

func patternOf(t testing.TB, text string) greys.Pattern {
	t.Helper()
	p, err := greys.NewPattern(text)
	require.NoError(t, err)
	return p
}

func TestClassesThatTwoPatternsName(t *testing.T) {
	for _, test := range []struct {
		a, b string
		meet bool
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
		{"demo.𝄞", "demo.??", true}, // two units of Java's
		{"demo.𝄞", "demo.?", false},
	} {
		a, b := classes{patternOf(t, test.a), false}, classes{patternOf(t, test.b), false}
		assert.Equal(t, test.meet, a.mayMeet(b), "%s and %s", test.a, test.b)
		assert.Equal(t, test.meet, b.mayMeet(a), "%s and %s", test.b, test.a)
		a.regexp = true
		assert.True(t, a.mayMeet(b), "a regular expression may name anything")
		assert.True(t, b.mayMeet(a))
	}
}

// All texts of few letters are tried against an obvious matcher.
func TestPatternsMeetWhereThereIsATextForBoth(t *testing.T) {
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
			assert.Equal(t, obviouslyMatches(a, text), matches(patternOf(t, a), text), "%s and %q", a, text)
		}
		if want {
			both++
		}
		assert.Equal(t, want, classes{patternOf(t, a), false}.mayMeet(classes{patternOf(t, b), false}), "%s and %s", a, b)
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
