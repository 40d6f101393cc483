// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package javaser writes and reads objects of Java's serialisation, as far as a
// plain configuration object needs it: one object of one Serializable class
// without a superclass, whose fields are primitives, Strings and
// java.util.ArrayLists of Strings.
//
// Marshal writes the same bytes as java.io.ObjectOutputStream for such an object, if
// equal strings are one String in Java. Unmarshal reads these, and refuses all other
// content with its offset: other classes, superclasses, arrays, enums, proxies, and
// data that a class writes by itself. It needs no classes, runs no code, and
// allocates in proportion to its input.
//
// The package knows values and bytes. It does no I/O.
//
// Specification: Java Object Serialization Specification, chapter 6, "Object
// Serialization Stream Protocol" (stream version 5).
package javaser
