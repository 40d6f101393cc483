// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package callevent

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestANameInABatchIsShortUTF8(t *testing.T) {
	a := func(n int) string { return strings.Repeat("a", n) }
	for _, test := range []struct{ name, text, want string }{
		{"empty", "", ""},
		{"as it is", "demo/Shop.prüfen;1;()V", "demo/Shop.prüfen;1;()V"},
		{"not UTF-8", "a\xffb", "a\uFFFDb"},
		{"a surrogate", "a\xed\xa0\x80b", "a\uFFFDb"},
		{"as long as may be", a(MaxNameBytes), a(MaxNameBytes)},
		{"longer", a(MaxNameBytes + 1), a(MaxNameBytes)},
		{"a character of 2 bytes over the end", a(MaxNameBytes-1) + "éa", a(MaxNameBytes - 1)},
		{"a character of 2 bytes at the end", a(MaxNameBytes-2) + "éa", a(MaxNameBytes-2) + "é"},
		{"a character of 3 bytes over the end", a(MaxNameBytes-2) + "€a", a(MaxNameBytes - 2)},
		{"a character of 4 bytes over the end", a(MaxNameBytes-3) + "𝄞a", a(MaxNameBytes - 3)},
		{"a character of 4 bytes at the end", a(MaxNameBytes-4) + "𝄞a", a(MaxNameBytes-4) + "𝄞"},
		{"the replacement doesn't fit", a(MaxNameBytes-2) + "\xff", a(MaxNameBytes - 2)},
		{"replacements make it longer", strings.Repeat("\xffa", MaxNameBytes/2), strings.Repeat("\uFFFDa", MaxNameBytes/4)},
		{"nothing but continuation bytes", strings.Repeat("\x80", 2*MaxNameBytes), "\uFFFD"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := name(test.text)
			assert.Equal(t, test.want, got)
			assert.True(t, utf8.ValidString(got))
			assert.LessOrEqual(t, len(got), MaxNameBytes)

			batch := pack(t, testStream, MinBatchBytes, []call{{
				kind: KindThrow, exception: test.text + ".", lane: Lane{Name: test.text}, function: &Function{Qualified: test.text},
			}})
			require.Len(t, batch, 1)
			c := unpack(t, batch[0], 1)[0]
			assert.Equal(t, test.want, c.lane.Name)
			assert.Equal(t, test.want, c.function.Qualified)
		})
	}
}
