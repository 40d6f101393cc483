// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package treeformat

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

func TestPrintable(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"plain text stays", "com.example.Main.main(int[])", "com.example.Main.main(int[])"},
		{"letters of all languages stay", "名前.имя.نام", "名前.имя.نام"},
		{"joiners stay, which languages need", "می\u200cخواهم", "می\u200cخواهم"},
		{"markup stays: pages escape it", `<a href="x">`, `<a href="x">`},
		{"a backslash stays", `App\Http\Kernel`, `App\Http\Kernel`},
		{"the character for what cannot be shown stays", "a\ufffdb", "a\ufffdb"},
		{"ends of lines are written", "a\nb\r\u2028c\u2029d\u0085e", `a\nb\r\u2028c\u2029d\u0085e`},
		{"controls are written", "\x00\x07\x1b[31m\x7f", `\x00\a\x1b[31m\x7f`},
		{"changes of direction are written", "\u202egnp.exe\u2066\u200f", `\u202egnp.exe\u2066\u200f`},
		{"spaces that are none are written", "a\u00a0b\u200bc\ufeff", `a\u00a0b\u200bc\ufeff`},
		{"bytes that are no UTF-8 are written", "a\xff\xc3(", `a\xff\xc3(`},
		{"planes beyond the first", "😀\U000e0001", `😀\U000e0001`},
		{"nothing", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, test.want, Printable(test.text))
		})
	}
}

func FuzzPrintable(f *testing.F) {
	f.Add(hostile)
	f.Fuzz(func(t *testing.T, text string) {
		got := Printable(text)
		assert.True(t, utf8.ValidString(got))
		assert.Equal(t, got, Printable(got), "it is printable then")
		for _, r := range got {
			assert.True(t, shown(r), "%U", r)
		}
	})
}

func TestANameIsNeverEmpty(t *testing.T) {
	assert.Equal(t, "(no name)", Name(""))
	assert.Equal(t, "a", Name("a"))
}
