// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/url"
	"strings"
)

// segment is a text as a part of a path. A tilde stands before those that would be no
// part: the empty one and those of dots, which browsers take for directories; and before
// those that begin with one.
func segment(text string) string {
	if text == "" || text == "." || text == ".." || text[0] == '~' {
		return "~" + url.PathEscape(text)
	}
	return url.PathEscape(text)
}

// unsegment is the text of a part of a path that is unescaped already.
func unsegment(part string) string { return strings.TrimPrefix(part, "~") }

// unescapeSegment is the text of [segment], as forms have it: browsers change line ends,
// and what is no UTF-8, in fields.
func unescapeSegment(s string) (string, error) {
	part, err := url.PathUnescape(s)
	if err != nil {
		return "", badRequestf("expected a name as it is in addresses: %w", err)
	}
	return unsegment(part), nil
}
