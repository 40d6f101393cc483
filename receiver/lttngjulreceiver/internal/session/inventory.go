// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import "slices"

// bytesOfName is the memory of a name without its text.
const bytesOfName = 16

// inventory has the loggers of an agent. It belongs to the session's goroutine.
type inventory struct {
	// names are sorted without duplicates. They lie in one piece of memory.
	names []string
	// bytes is the memory of all names.
	bytes int
}

// replace replaces the names by those of a list, which it may change. It returns the names
// that appeared and disappeared.
func (i *inventory) replace(names []string) (appeared, disappeared []string) {
	bytes := 0
	for _, name := range names {
		bytes += len(name) + 1 + bytesOfName
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if slices.Equal(names, i.names) {
		return nil, nil
	}
	appeared, disappeared = difference(names, i.names), difference(i.names, names)
	i.names, i.bytes = names, bytes
	return appeared, disappeared
}

// difference returns the names that are in a and not in b. Both are sorted without
// duplicates.
func difference(a, b []string) (only []string) {
	for _, name := range a {
		for len(b) > 0 && b[0] < name {
			b = b[1:]
		}
		if len(b) == 0 || b[0] != name {
			only = append(only, name)
		}
	}
	return only
}
