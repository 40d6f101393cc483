// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package codegroup names the part of a program to which a function belongs, for the colours of pictures: the package of
// a Java method, the source file of a Ruby method, the library of a C function. It knows names and files only, and no
// tracer: the form of a name shows its language.
package codegroup

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Other is the group of a function whose name and file show none.
const Other = "(other)"

// mostParts is how many parts of a Java package make a group: org.apache.maven is one.
const mostParts = 3

// Of returns the group of a function, by its qualified name and its source file, which can be empty.
//
//   - A name with "+0x" is an address in a library without symbols: the group is the library.
//   - A Ruby file is a group, with the name of its folder.
//   - A name with dots is that of Java: the group has the first parts of its package. Without a package it is the class.
//   - Another function with a file belongs to the folder of the file, which has the sources of a library or program.
//   - Without a file, the outermost namespace of C++, Rust or Ruby is the group.
func Of(function, file string) string {
	if object, _, ok := strings.Cut(function, "+0x"); ok && object != "" {
		return path.Base(object)
	}
	if strings.HasSuffix(file, ".rb") {
		return tail(file)
	}
	if group := javaPackage(function); group != "" {
		return group
	}
	if folder := path.Dir(file); file != "" && folder != "." && folder != "/" {
		return path.Base(folder)
	}
	if file != "" {
		return path.Base(file)
	}
	if namespace, _, ok := strings.Cut(function, "::"); ok && isIdentifier(namespace) {
		return namespace
	}
	if class, _, ok := strings.Cut(function, "#"); ok && isIdentifier(class) {
		return class
	}
	return Other
}

// tail returns the last two elements of a path.
func tail(file string) string {
	folder, name := path.Split(path.Clean(file))
	if folder = path.Base(folder); folder == "." || folder == "/" {
		return name
	}
	return folder + "/" + name
}

// javaPackage returns the first parts of the package of a method, or its class if it has no package. Other names have
// none.
func javaPackage(function string) string {
	dot := strings.LastIndexByte(function, '.')
	if dot <= 0 || dot == len(function)-1 {
		return ""
	}
	switch method := function[dot+1:]; method {
	case "<init>", "<clinit>": // constructors and initializers
	default:
		if !isIdentifier(method) {
			return ""
		}
	}
	class := function[:dot]
	parts, end := 0, 0 // of the package, and where it ends
	for begin := 0; ; {
		length := strings.IndexByte(class[begin:], '.')
		last := length < 0
		if last {
			length = len(class) - begin
		}
		if !isIdentifier(class[begin : begin+length]) {
			return ""
		}
		if last {
			break
		}
		if parts++; parts <= mostParts {
			end = begin + length
		}
		begin += length + 1
	}
	if parts == 0 {
		return class
	}
	return class[:end]
}

// isIdentifier reports whether a text is an identifier of Java, C++ or Ruby. Generated classes have $ and / in their names.
func isIdentifier(text string) bool {
	for i := range len(text) {
		c := text[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', c == '_', c == '$':
		case '0' <= c && c <= '9', c == '/', c == '-':
			if i == 0 {
				return false
			}
		case c >= utf8.RuneSelf:
			return isUnicodeIdentifier(text)
		default:
			return false
		}
	}
	return text != ""
}

func isUnicodeIdentifier(text string) bool {
	for _, r := range text {
		if !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) && r != '_' && r != '$' {
			return false
		}
	}
	return true
}
