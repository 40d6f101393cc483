// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pprofpages

import (
	"bytes"
	_ "embed" // for the style
)

// style hides what leads to pages that are not served: those that save settings, read
// source or object files, or run graphviz.
//
//go:embed style.css
var style []byte

// adapt makes a page of the driver one of ours: its scripts and styles get the nonce
// without which the security policy lets none run, and its head gets our style, and an
// icon so that the browser asks for none.
//
// Scripts and styles are those of the driver's templates: in whatever else is in a page,
// "<" is escaped.
func adapt(page []byte, nonce string) []byte {
	attribute := []byte(` nonce="` + nonce + `"`)
	out := make([]byte, 0, len(page)+len(style)+1024)
	for len(page) > 0 {
		at, tag := nextTag(page)
		out = append(out, page[:at]...)
		if tag == nil {
			break
		}
		if bytes.Equal(tag, headEnd) {
			out = append(out, `<link rel="icon" href="data:,"><style`...)
			out = append(out, attribute...)
			out = append(out, '>')
			out = append(out, style...)
			out = append(out, `</style>`...)
			out = append(out, tag...)
		} else {
			out = append(out, tag...)
			out = append(out, attribute...)
		}
		page = page[at+len(tag):]
	}
	return out
}

// The tags at which something is put in: behind the first two, before the third.
var (
	scriptTag = []byte("<script")
	styleTag  = []byte("<style")
	headEnd   = []byte("</head>")
)

// nextTag finds the first of the tags, or gives the end of the page.
func nextTag(page []byte) (at int, tag []byte) {
	for at = 0; ; at++ {
		next := bytes.IndexByte(page[at:], '<')
		if next < 0 {
			return len(page), nil
		}
		at += next
		for _, tag := range [][]byte{scriptTag, styleTag, headEnd} {
			if bytes.HasPrefix(page[at:], tag) {
				return at, tag
			}
		}
	}
}
