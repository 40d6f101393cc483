// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// name holds the names of a function for people.
type name struct{ qualified, display string }

const (
	// maxMangledBytes is the maximum length of a demangled symbol, because the time for demangling may grow faster
	// than the length. Real symbols are shorter.
	maxMangledBytes = 8 << 10
	// maxDemangledPower bounds the demangled name to 2^maxDemangledPower bytes, which is MaxNameBytes.
	maxDemangledPower = 14
)

// cloneSuffix matches the suffix that compilers add to the name of a function's parts and variants.
var cloneSuffix = regexp.MustCompile(
	`(\.(isra|part|constprop|lto_priv|llvm|localalias|cold|warm|clone|resolver)(\.[0-9]+)*)+$`)

// thunk matches the prefix of a symbol of a function that adjusts "this" and calls its target (Itanium C++ ABI,
// 5.1.4.1).
var thunk = regexp.MustCompile(`^_ZT(hn?[0-9]+|vn?[0-9]+_n?[0-9]+)_`)

// enclosingFunction matches the remains of parameters that the demangler leaves in the name of an enclosing function:
// "main()::Local::pay".
var enclosingFunction = regexp.MustCompile(`\(\)( const| volatile| &&?| noexcept)*::`)

// demangled returns the names of a symbol. A thunk has the names of its target. A symbol that is not mangled is its
// own name.
func demangled(symbol string) name {
	symbol, _, _ = strings.Cut(symbol, "@") // a version: read@@GLIBC_2.2.5
	if len(symbol) <= maxMangledBytes {
		mangled := thunk.ReplaceAllString(symbol, "_Z")
		qualified := demangledString(mangled)
		if qualified != "" {
			display := shortened(demangledString(mangled, demangle.NoTemplateParams))
			return name{qualified: printable(qualified), display: printable(cmp.Or(display, qualified))}
		}
	}
	symbol = printable(symbol)
	if i := cloneSuffix.FindStringIndex(symbol); i != nil && i[0] > 0 {
		symbol = symbol[:i[0]]
	}
	return name{qualified: symbol, display: symbol}
}

// demangledString demangles a symbol, without parameters. It returns "" if it cannot.
func demangledString(mangled string, more ...demangle.Option) string {
	options := append(more, demangle.NoParams, demangle.NoEnclosingParams, demangle.NoABITags, demangle.MaxLength(maxDemangledPower))
	s, err := demangle.ToString(mangled, options...)
	if err != nil {
		return ""
	}
	return enclosingFunction.ReplaceAllString(s, "::")
}

// shortened returns class and method of a demangled name without parameters and template arguments. These are its
// last two parts, plus anything declared inside the method: "Cart::total::{lambda(int)#1}::operator()". It omits
// namespaces without a name.
func shortened(qualified string) string {
	parts := nameParts(qualified)
	kept := len(parts)
	for plain := 0; kept > 0 && plain < 2; {
		kept--
		if isPlain(parts, kept) {
			plain++
		}
	}
	var b strings.Builder
	for _, part := range parts[kept:] {
		if part == "(anonymous namespace)" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("::")
		}
		b.WriteString(implementer(part))
	}
	return b.String()
}

// isPlain reports whether parts[i] is a name from the source: no lambda or closure, and not the call operator of one.
func isPlain(parts []string, i int) bool {
	if strings.HasPrefix(parts[i], "{") || parts[i] == "(anonymous namespace)" {
		return false
	}
	return parts[i] != "operator()" || i == 0 || !strings.HasPrefix(parts[i-1], "{")
}

// implementer returns "Type" for a Rust part "<a::Type as b::Trait>" or "<a::Type>". It returns any other part
// unchanged.
func implementer(part string) string {
	inner, ok := strings.CutPrefix(part, "<")
	if !ok || !strings.HasSuffix(inner, ">") {
		return part
	}
	inner = strings.TrimSuffix(inner, ">")
	inner, _, _ = strings.Cut(inner, " as ")
	inner = strings.TrimPrefix(inner, "impl ")
	parts := nameParts(inner)
	if len(parts) == 0 {
		return part
	}
	last := parts[len(parts)-1]
	if bare, _, ok := strings.Cut(last, "<"); ok && bare != "" {
		return bare
	}
	return last
}

// nameParts splits a qualified name at each "::" outside brackets.
func nameParts(s string) []string {
	var parts []string
	begin, depth := 0, 0
	for i := 0; i < len(s); {
		if i == begin && depth == 0 {
			i += operatorLength(s[i:])
			if i >= len(s) {
				break
			}
		}
		switch s[i] {
		case '<', '(', '[', '{':
			depth++
		case '>', ')', ']', '}':
			// The arrow of a function type closes no bracket.
			if depth > 0 && (s[i] != '>' || i == 0 || s[i-1] != '-') {
				depth--
			}
		case ':':
			if depth == 0 && strings.HasPrefix(s[i:], "::") {
				parts = appendPart(parts, s[begin:i])
				i += 2
				begin = i
				continue
			}
		}
		i++
	}
	return appendPart(parts, s[begin:])
}

// appendPart appends a part that is not empty. A Rust name without its generic arguments ends with "::<>".
func appendPart(parts []string, part string) []string {
	if part == "" || part == "<>" {
		return parts
	}
	return append(parts, part)
}

// operatorSymbols are the names of C++ operators with brackets. A longer one precedes its own prefix.
var operatorSymbols = []string{"()", "[]", "<<=", "<=>", "<<", "<=", "<", ">>=", ">>", ">=", ">", "->*", "->"}

// operatorLength returns the length of the C++ operator at the start of s, or 0.
func operatorLength(s string) int {
	const operator = "operator"
	rest, ok := strings.CutPrefix(s, operator)
	if !ok || rest == "" {
		return 0
	}
	if rest[0] == ' ' {
		return len(s) // a conversion: the rest is a type
	}
	for _, symbol := range operatorSymbols {
		if strings.HasPrefix(rest, symbol) {
			return len(operator) + len(symbol)
		}
	}
	return 0
}
