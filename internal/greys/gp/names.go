// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

// names are texts that came before, so that the same need not be made again. They are
// forgotten all at once when there are too many.
type names struct {
	byText map[string]string
	bytes  int
}

// Bounds of names: how many bytes they have together, and how long one may be to be kept.
const (
	maxNamesBytes = 4 << 20
	maxNameBytes  = 512
	// perName is what one takes beside its bytes, or more.
	perName = 64
)

// of is a text as a string.
func (n *names) of(text []byte) string {
	if len(text) > maxNameBytes {
		return string(text)
	}
	if name, known := n.byText[string(text)]; known {
		return name
	}
	if n.byText == nil || n.bytes > maxNamesBytes {
		n.byText, n.bytes = map[string]string{}, 0
	}
	name := string(text)
	n.byText[name] = name
	n.bytes += len(name) + perName
	return name
}
