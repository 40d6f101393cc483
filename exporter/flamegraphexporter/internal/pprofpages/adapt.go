// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pprofpages

import (
	"bytes"
	_ "embed" // for the style
	"regexp"
	"slices"
)

// style has dark colours, and the width of a phone. It hides links to pages that are not served: those that save settings,
// read source or object files, or run graphviz.
//
//go:embed style.css
var style []byte

// adapt adapts a page of the driver. Its scripts and styles get the nonce that the security
// policy demands. Its head gets the width of a phone, our style, and an icon so that the browser requests none. The names of the user's saved settings are removed.
//
// All tags are those of the driver's templates: anywhere else in a page "<" is escaped.
func adapt(page []byte, nonce string) []byte {
	for _, list := range settingsLists {
		page = cut(page, list.from, list.to)
	}
	page = emptyTop.ReplaceAll(page, []byte("$1 [] );"))
	attribute := []byte(` nonce="` + nonce + `"`)
	out := make([]byte, 0, len(page)+len(style)+1024)
	for len(page) > 0 {
		at, tag := nextTag(page)
		out = append(out, page[:at]...)
		if tag == nil {
			break
		}
		if bytes.Equal(tag, headEnd) {
			out = append(out, `<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,"><style`...)
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

// emptyTop matches the call for a list without functions. Its script would fail with null, and menus would not work.
var emptyTop = regexp.MustCompile(`(makeTopTable\( -?\d+ ,)\s+null \);`)

// settingsLists are the two lists of saved settings in a page: each is between two tags.
var settingsLists = []struct{ from, to string }{
	{`id="save-config">Save as ...</a>`, "</div>"},
	{`<datalist id="config-list">`, "</datalist>"},
}

// cut removes the text between two tags, if both are in the page.
func cut(page []byte, from, to string) []byte {
	before, rest, found := bytes.Cut(page, []byte(from))
	end := bytes.Index(rest, []byte(to))
	if !found || end < 0 {
		return page
	}
	return slices.Concat(before, []byte(from), rest[end:])
}

// The tags at which text is inserted: behind the first two, before the third.
var (
	scriptTag = []byte("<script")
	styleTag  = []byte("<style")
	headEnd   = []byte("</head>")
)

// nextTag finds the first of the tags, or returns the end of the page.
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
