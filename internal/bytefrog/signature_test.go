// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrog

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

func TestParseMethodSignature(t *testing.T) {
	cases := []struct {
		name, text, qualified, display string
	}{
		{"a method of a nested class", "demo/Shop$Order.process;0;()V", "demo.Shop$Order.process", "Shop$Order.process"},
		{"a constructor", "demo/Shop$Order.<init>;0;(I)V", "demo.Shop$Order.<init>", "Shop$Order.<init>"},
		{"a static initialiser", "demo/Shop.<clinit>;8;()V", "demo.Shop.<clinit>", "Shop.<clinit>"},
		{"arguments that are classes", "demo/Shop.main;9;([Ljava/lang/String;)V", "demo.Shop.main", "Shop.main"},
		{"a class without a package", "Main.main;9;()V", "Main.main", "Main.main"},
		{"a hidden class", "demo/Shop$$Lambda.0x7f00.run;17;()V", "demo.Shop$$Lambda.0x7f00.run", "Shop$$Lambda.0x7f00.run"},
		{"names that are not ASCII", "démo/Läden.öffne;1;()Ljava/util/List;", "démo.Läden.öffne", "Läden.öffne"},
		{"large access flags", "a/B.c;4161;()V", "a.B.c", "B.c"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, MethodName{Qualified: c.qualified, Display: c.display}, ParseMethodSignature(c.text))
		})
	}
}

func TestUnknownSignaturesAreUnchanged(t *testing.T) {
	for _, text := range []string{
		"", ";", ";;", ".", ".;0;()V", "a.b", "a.b;0", "a.b;0;", "a.b;;()V", "a.b;x;()V", "a.b;-1;()V",
		"a.b;0;V", "a.b;0;(V", "a.b;0; ()V", "ab;0;()V", "a.;0;()V", ".b;0;()V", "a/.b;0;()V", "a.b/c;0;()V",
		"void demo.Shop.main(String[])", "my marker; with; text",
	} {
		assert.Equal(t, MethodName{Qualified: text, Display: text}, ParseMethodSignature(text), "%q", text)
	}
}

func TestAllSignaturesOfTheCapturesAreParsed(t *testing.T) {
	for _, name := range captures {
		for _, text := range signatures(t, name) {
			got := ParseMethodSignature(text)
			assert.NotEqual(t, text, got.Qualified)
			assert.True(t, strings.HasSuffix(got.Qualified, got.Display), "%q", text)
			assert.NotContains(t, got.Qualified, "/")
		}
	}
}

func FuzzParseMethodSignature(f *testing.F) {
	for _, text := range signatures(f, "shop") {
		f.Add(text)
	}
	f.Add("void demo.Shop.main(String[])")
	f.Fuzz(func(t *testing.T, text string) {
		got := ParseMethodSignature(text)
		if len(got.Qualified) > len(text) || !strings.HasSuffix(got.Qualified, got.Display) {
			t.Fatalf("%q: got %+v", text, got)
		}
		if text != "" && got.Display == "" {
			t.Fatalf("%q: expected a display name, got none", text)
		}
		if utf8.ValidString(text) && !utf8.ValidString(got.Qualified) {
			t.Fatalf("%q: expected UTF-8, got %q", text, got.Qualified)
		}
	})
}
