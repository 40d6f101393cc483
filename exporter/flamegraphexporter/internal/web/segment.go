// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/url"
	"strings"
)

// segment returns a text as a part of a path. Texts that cannot be a part get a tilde in front: the
// empty one, dots, which browsers read as directories, and texts that begin with a tilde.
func segment(text string) string {
	if text == "" || text == "." || text == ".." || text[0] == '~' {
		return "~" + url.PathEscape(text)
	}
	return url.PathEscape(text)
}

// unsegment is the text of a part of a path that is unescaped already.
func unsegment(part string) string { return strings.TrimPrefix(part, "~") }

// unescapeSegment returns the text of a [segment] from a form. Forms have segments because browsers
// change line ends and invalid UTF-8 in fields.
func unescapeSegment(s string) (string, error) {
	part, err := url.PathUnescape(s)
	if err != nil {
		return "", badRequestf("expected a name as it is in addresses: %w", err)
	}
	return unsegment(part), nil
}
