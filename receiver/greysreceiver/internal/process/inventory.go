// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"hash/maphash"
	"strings"

	"github.com/callbraid/callbraid/internal/greys"
	"github.com/callbraid/callbraid/receiver/greysreceiver/internal/text"
)

// inventory remembers listed classes and methods, so that only changes are reported.
type inventory struct {
	max  int
	seed maphash.Seed
	// entries are by a hash of their key.
	entries map[uint64]entry
	// nameBytes is the length of all names together.
	nameBytes int
	// dropped counts classes and methods beyond the limit.
	dropped int64
}

// entry is a listed class or method.
type entry struct {
	// content is a hash of its attributes.
	content uint64
	// by is the list that had it last.
	by   List
	name string
}

// List is one run of a task that lists classes or methods: the numbers of the task and of the run.
type List struct {
	Task int
	Run  int64
}

const (
	// meanNameBytes bounds the length of names in the mean, where the inventory is full.
	meanNameBytes = 256
	// bytesOfEntry is the memory of an entry without its name, estimated.
	bytesOfEntry = 110
)

func newInventory(most int) inventory {
	return inventory{max: most, seed: maphash.MakeSeed(), entries: map[uint64]entry{}}
}

// bytes is the memory of the inventory, estimated.
func (n *inventory) bytes() int { return n.nameBytes + bytesOfEntry*len(n.entries) }

// Change is what a list shows of a class or a method.
type Change uint8

const (
	Unchanged Change = iota
	Found
	Changed
)

func (c Change) String() string { return [...]string{"none", "found", "changed"}[c] }

// compare enters a class or a method of a list, and returns what has changed.
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
		// Another task lists it, or the list has two that look alike.
		return Unchanged
	}
	now.name = before.name
	n.entries[id] = now
	if before.content != now.content {
		return Changed
	}
	return Unchanged
}

// removeOthers removes the entries of a task that its complete list does not have, and returns
// their names.
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

// class enters a class. The released server gives lambdas and anonymous classes an empty name:
// nothing tells one of them from another, so they are left out.
func (n *inventory) class(by List, c *greys.Class) Change {
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
		// The values of static fields change all the time, and may be secret.
		writeTexts(&content, c.Fields[i].Modifier, c.Fields[i].Type, c.Fields[i].Name)
	}
	return n.compare(by, "class\x00"+c.Name+"\x00"+loader, c.Name, content.String())
}

// method enters a method.
func (n *inventory) method(by List, m *greys.Method) Change {
	var key, content strings.Builder
	writeTexts(&key, "method", m.Class, m.Name)
	writeTexts(&key, m.Parameters...)
	writeTexts(&content, m.Modifier, m.Return)
	writeTexts(&content, m.Annotations...)
	writeTexts(&content, m.Exceptions...)
	name := m.Class + "." + m.Name + "(" + strings.Join(m.Parameters, ", ") + ")"
	return n.compare(by, key.String(), name, content.String())
}

// writeTexts writes a list of texts so that no other list gives the same.
func writeTexts(to *strings.Builder, texts ...string) {
	for _, t := range texts {
		to.WriteString(t)
		to.WriteByte(0)
	}
	to.WriteByte(1)
}
