// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package javamethods

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPatternsOfNames(t *testing.T) {
	for _, text := range []string{
		"*", "demo.*", "check?ut", "<init>", "demo.Shop$Inner", "lambda$main$0", `demo\.(Shop|Pay)`, `.*[^-]{2,}`, "名前", "a-b", "😀", strings.Repeat("a", MaxPatternBytes),
	} {
		p, err := NewPattern(text)
		require.NoError(t, err)
		assert.Equal(t, text, p.String())
	}
}

func TestPatternsThatWouldBeMoreThanOneArgument(t *testing.T) {
	for _, tt := range []struct{ text, err string }{
		{"", "pattern is empty: expected a pattern of names, such as com.example.*"},
		{"-E", `pattern "-E" begins with a hyphen: the server would read it as an option`},
		{"--", `pattern "--" begins with a hyphen: the server would read it as an option`},
		{"a b", `pattern "a b" has ' ' at byte 1: the server would not read it as one argument`},
		{`"a"`, `pattern "\"a\"" has '"' at byte 0: the server would not read it as one argument`},
		{"a\x04", `pattern "a\x04" has '\x04' at byte 1: the server would not read it as one argument`},
		{"a\xff", `pattern "a\xff" is not UTF-8`},
		{strings.Repeat("a", MaxPatternBytes+1), "pattern has 1025 bytes: expected at most 1024"},
	} {
		_, err := NewPattern(tt.text)
		require.EqualError(t, err, tt.err)
	}
	for _, c := range "'`\t\n\r\x00\x18\x7f\u0085\u00a0\u200b\u2028\u3000\ufeff" {
		_, err := NewPattern("a" + string(c))
		assert.Error(t, err, "%q", c)
	}
}
