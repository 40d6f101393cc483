// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package names

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/testkit/heapsize"
)

func TestClassesAreBoundedAndWithoutAddresses(t *testing.T) {
	n := New(3)
	name := func(class string) string { return n.Texts[n.ClassNumber([]byte(class))] }
	assert.Equal(t, "String", name("String"))
	assert.Equal(t, "#<Class>", name("#<Class:0x00007f01999002a8>"))
	assert.Equal(t, n.ClassNumber([]byte("#<Class:0x1>")), n.ClassNumber([]byte("#<Class:0x2>")), "one for all")
	assert.Equal(t, "#<Class:#<Shop>>", name("#<Class:#<Shop:0x00007f01999002a8>>"))
	assert.Equal(t, int64(0), n.Folded)
	assert.Equal(t, "other", name("Array"), "there is no room")
	assert.Equal(t, "other", name("#<Module:0x1>"))
	assert.Equal(t, int64(2), n.Folded)
	assert.Equal(t, "String", name("String"))
	assert.Equal(t, "hidden", n.Texts[n.ClassNumber(nil)])
	assert.Equal(t, "unknown", n.Texts[n.FileNumber(nil)])
}

func TestTextsAreValidAndNotTooLong(t *testing.T) {
	for _, raw := range []string{"", "a", "\xff\xfe", strings.Repeat("é", MaxTextBytes), strings.Repeat("\x80", 3*MaxTextBytes)} {
		text := ValidText([]byte(raw))
		assert.True(t, utf8.ValidString(text))
		assert.LessOrEqual(t, len(text), MaxTextBytes+utf8.UTFMax)
	}
	assert.Equal(t, strings.Repeat("é", MaxTextBytes/2), ValidText([]byte(strings.Repeat("é", MaxTextBytes))))
}

func TestANameThatIsReservedIsQuoted(t *testing.T) {
	for name, want := range map[string]string{
		"other": `"other"`, "hidden": `"hidden"`, "unknown": `"unknown"`, `"other"`: `""other""`,
		"Other": "Other", `"Other"`: `"Other"`, "others": "others", "": "", `"`: `"`,
	} {
		n := New(10)
		assert.Equal(t, want, n.Texts[n.ClassNumber([]byte(name))], name)
		assert.Equal(t, want, ClassName([]byte(name)), name)
		n = New(10)
		assert.Equal(t, want, n.Texts[n.FileNumber([]byte(name))], name)
	}
	n := New(1)
	other, quoted := n.ClassNumber([]byte("other")), n.ClassNumber([]byte(`"other"`))
	assert.Equal(t, [...]int32{First, Other}, [...]int32{other, quoted}, "there is room for one")
	assert.Equal(t, other, n.ClassNumber([]byte("other")))
}

func TestCountedMemoryIsTheMemoryOfTheNames(t *testing.T) {
	n := New(1_000_000)
	heapsize.AssertCounted(t, n.Memory, func() {
		for i := range 100_000 {
			n.ClassNumber(fmt.Appendf(nil, "%d%s", i, strings.Repeat("x", 100)))
		}
	}, 0.35)
	runtime.KeepAlive(n)
}
