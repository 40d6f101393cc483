// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package text limits the texts of servers before they become attributes.
package text

import (
	"strings"
	"unicode/utf8"
)

// MaxShort and MaxLong are the maximum lengths in bytes: of a name, and of a text with many lines.
const (
	MaxShort = 1 << 10
	MaxLong  = 64 << 10
)

// Short returns a valid UTF-8 text of at most MaxShort bytes.
func Short(of string) string { return cut(of, MaxShort) }

// Long returns a valid UTF-8 text of at most MaxLong bytes.
func Long(of string) string { return cut(of, MaxLong) }

func cut(of string, most int) string {
	if len(of) > most {
		at := most
		for at > most-utf8.UTFMax && !utf8.RuneStart(of[at]) {
			at--
		}
		of = strings.Clone(of[:at]) // releases the memory of the rest
	}
	return strings.ToValidUTF8(of, "\uFFFD")
}
