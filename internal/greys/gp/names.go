// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

// names interns texts, so that a repeated text costs no memory. When they are too many, all are dropped.
type names struct {
	byText map[string]string
	bytes  int
}

// Limits of all interned names, and of one name.
const (
	maxNamesBytes = 4 << 20
	maxNameBytes  = 512
	// perName is an upper estimate of the memory of an entry beside its bytes.
	perName = 64
)

// intern returns a text as a string.
func (n *names) intern(text []byte) string {
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
