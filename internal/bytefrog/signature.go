// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrog

import "strings"

// MethodName has the names in a method signature's text.
type MethodName struct {
	// Qualified is class and method with dots: "demo.Shop$Order.process".
	Qualified string
	// Display is the same without the package: "Shop$Order.process".
	Display string
}

// ParseMethodSignature reads the text of a MapMethod message. The Java agent
// writes the class with slashes, a dot, the method, the Java access flags in
// decimal, and the descriptor: "demo/Shop$Order.process;0;()V". For any other text,
// both names are the text itself.
func ParseMethodSignature(text string) MethodName {
	unknown := MethodName{Qualified: text, Display: text}
	name, rest, ok := strings.Cut(text, ";")
	if !ok {
		return unknown
	}
	flags, descriptor, ok := strings.Cut(rest, ";")
	if !ok || !isDecimal(flags) || !strings.HasPrefix(descriptor, "(") || !strings.Contains(descriptor, ")") {
		return unknown
	}
	// A method's name has no dot (JVM specification 4.2.2), but the name of a hidden class has one: the last dot stands
	// before the method.
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 || dot == len(name)-1 {
		return unknown
	}
	simple := strings.LastIndexByte(name[:dot], '/') + 1
	if simple == dot || strings.IndexByte(name[dot:], '/') >= 0 {
		return unknown
	}
	return MethodName{
		Qualified: strings.ReplaceAll(name, "/", "."),
		Display:   name[simple:],
	}
}

// isDecimal reports whether s is one or more decimal digits.
func isDecimal(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
