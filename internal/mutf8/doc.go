// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package mutf8 converts between Go strings and Java's modified UTF-8, the
// encoding that DataOutputStream.writeUTF and Java's class files and
// serialisation use.
//
// Modified UTF-8 differs from UTF-8 in two points: NUL is written as the two
// bytes C0 80, so that no encoded text contains a zero byte; and characters
// above U+FFFF are written as their two UTF-16 surrogates, each as three bytes.
// A Java string may also hold surrogates that have no partner. Go strings
// cannot, so such a half has no exact counterpart here.
//
// The package knows bytes and strings. It reads no lengths and does no I/O.
//
// Specification: java.io.DataInput, "Modified UTF-8" (Java SE 17).
package mutf8
