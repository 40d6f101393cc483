// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"hash/maphash"
	"strings"

	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/javamethods/text"
)

// inventory stores listed classes and methods, so that only changes are reported.
type inventory struct {
	max  int
	seed maphash.Seed
	// entries are indexed by a hash of their key.
	entries map[uint64]entry
	// nameBytes is the total length of all names.
	nameBytes int
	// dropped counts classes and methods beyond the limit.
	dropped int64
}

// entry is a listed class or method.
type entry struct {
	// content is a hash of its attributes.
	content uint64
	// by is the last list that contained the entry.
	by   List
	name string
}

// List identifies one run of a task that lists classes or methods.
type List struct {
	Task int
	Run  int64
}

const (
	// meanNameBytes limits the mean length of names in a full inventory.
	meanNameBytes = 256
	// bytesOfEntry is the estimated memory of an entry without its name.
	bytesOfEntry = 110
)

func newInventory(most int) inventory {
	return inventory{max: most, seed: maphash.MakeSeed(), entries: map[uint64]entry{}}
}

// bytes returns the estimated memory of the inventory.
func (n *inventory) bytes() int { return n.nameBytes + bytesOfEntry*len(n.entries) }

// Change is the difference between a list and the inventory for a class or a method.
type Change uint8

const (
	Unchanged Change = iota
	Found
	Changed
)

func (c Change) String() string { return [...]string{"none", "found", "changed"}[c] }

// compare stores a class or a method of a list, and returns its change.
func (n *inventory) compare(by List, key, name, content string) Change {
	now := entry{content: maphash.String(n.seed, content), by: by, name: text.Short(name)}
	id := maphash.String(n.seed, key)
	before, known := n.entries[id]
	switch {
	case !known && (len(n.entries) >= n.max || n.nameBytes+len(now.name) > n.max*meanNameBytes+text.MaxShort):
		n.dropped++
		return Unchanged
	case !known:
		now.name = strings.Clone(now.name) // it may be a part of a longer text
		n.nameBytes += len(now.name)
		n.entries[id] = now
		return Found
	case before.by.Task != by.Task || before.by.Run == by.Run:
		// Another task lists it, or the list has two entries with the same key.
		return Unchanged
	}
	now.name = before.name
	n.entries[id] = now
	if before.content != now.content {
		return Changed
	}
	return Unchanged
}

// removeOthers removes the entries of a task that are not in its complete list, and returns their names.
func (n *inventory) removeOthers(by List) (names []string) {
	for id, e := range n.entries {
		if e.by.Task == by.Task && e.by.Run != by.Run {
			names = append(names, e.name)
			n.nameBytes -= len(e.name)
			delete(n.entries, id)
		}
	}
	return names
}

// class stores a class. The released server sends an empty name for lambdas and anonymous classes. They cannot be
// distinguished, so they are ignored.
func (n *inventory) class(by List, c *javamethods.Class) Change {
	if c.Name == "" {
		return Unchanged
	}
	loader := ""
	if len(c.Loaders) > 0 {
		loader = c.Loaders[0]
	}
	var content strings.Builder
	writeTexts(&content, c.CodeSource, c.Modifier, c.Super)
	writeTexts(&content, c.Kinds...)
	writeTexts(&content, c.Annotations...)
	writeTexts(&content, c.Interfaces...)
	writeTexts(&content, c.Loaders...)
	for i := range c.Fields {
		// Values of static fields change often, and may be secret.
		writeTexts(&content, c.Fields[i].Modifier, c.Fields[i].Type, c.Fields[i].Name)
	}
	return n.compare(by, "class\x00"+c.Name+"\x00"+loader, c.Name, content.String())
}

// method stores a method.
func (n *inventory) method(by List, m *javamethods.Method) Change {
	var key, content strings.Builder
	writeTexts(&key, "method", m.Class, m.Name)
	writeTexts(&key, m.Parameters...)
	writeTexts(&content, m.Modifier, m.Return)
	writeTexts(&content, m.Annotations...)
	writeTexts(&content, m.Exceptions...)
	name := m.Class + "." + m.Name + "(" + strings.Join(m.Parameters, ", ") + ")"
	return n.compare(by, key.String(), name, content.String())
}

// writeTexts writes a list of texts. Different lists have different results.
func writeTexts(to *strings.Builder, texts ...string) {
	for _, t := range texts {
		to.WriteString(t)
		to.WriteByte(0)
	}
	to.WriteByte(1)
}
