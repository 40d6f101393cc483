// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"hash/maphash"
	"strings"

	"github.com/callbraid/callbraid/internal/greys"
)

// inventory is what is known of classes and methods, so that only what changed is said.
type inventory struct {
	max  int
	seed maphash.Seed
	// entries are by a hash of what tells one from others.
	entries map[uint64]found
	// bytes are those of all names.
	bytes int
	// dropped counts those that there was no room for, which are not said.
	dropped int64
}

// meanNameBytes is how long names of classes and methods may be in the mean: where there are
// as many as may be, they take no more memory.
const meanNameBytes = 256

// found is a class or a method that a task found.
type found struct {
	// content is a hash of all that is said of it.
	content uint64
	// task is the one that found it first, and run the last one of its that did.
	task int
	run  int64
	name string
}

func newInventory(most int) inventory {
	return inventory{max: most, seed: maphash.MakeSeed(), entries: map[uint64]found{}}
}

// change is what is new of a class or a method.
type change uint8

const (
	changeNone change = iota
	changeFound
	changeChanged
)

func (c change) String() string { return [...]string{"none", "found", "changed"}[c] }

// see is told of a class or a method that a run has found, with all that is said of it.
func (n *inventory) see(r *run, key, name, content string) change {
	now := found{content: maphash.String(n.seed, content), task: r.task.number, run: r.number, name: text(name)}
	id := maphash.String(n.seed, key)
	before, known := n.entries[id]
	switch {
	case !known && (len(n.entries) >= n.max || n.bytes+len(now.name) > n.max*meanNameBytes+maxTextBytes):
		n.dropped++
		return changeNone
	case !known:
		now.name = strings.Clone(now.name) // it may be a part of a longer text
		n.bytes += len(now.name)
		n.entries[id] = now
		return changeFound
	case before.task != now.task || before.run == now.run:
		// Another task says it, or there are two that can't be told apart.
		return changeNone
	}
	now.name = before.name
	n.entries[id] = now
	if before.content != now.content {
		return changeChanged
	}
	return changeNone
}

// gone forgets what a run has not found that was complete, and gives the names.
func (n *inventory) gone(r *run) (names []string) {
	for id, f := range n.entries {
		if f.task == r.task.number && f.run != r.number {
			names = append(names, f.name)
			n.bytes -= len(f.name)
			delete(n.entries, id)
		}
	}
	return names
}

// class handles a class that was found. The lock is held. The released server gives lambdas and
// anonymous classes an empty name: nothing tells one of them from another, so they have no record.
func (p *process) class(r *run, c *greys.Class) {
	if c.Name == "" {
		return
	}
	loader := ""
	if len(c.Loaders) > 0 {
		loader = c.Loaders[0]
	}
	var content strings.Builder
	write(&content, c.CodeSource, c.Modifier, c.Super)
	write(&content, c.Kinds...)
	write(&content, c.Annotations...)
	write(&content, c.Interfaces...)
	write(&content, c.Loaders...)
	for i := range c.Fields {
		// What static fields hold changes all the time, and may be a secret.
		write(&content, c.Fields[i].Modifier, c.Fields[i].Type, c.Fields[i].Name)
	}
	key := "class\x00" + c.Name + "\x00" + loader
	if what := p.inventory.see(r, key, c.Name, content.String()); what != changeNone {
		p.env.saidClass(p.origin, r.task, c, what)
	}
}

// method handles a method that was found. The lock is held.
func (p *process) method(r *run, m *greys.Method) {
	var key, content strings.Builder
	write(&key, "method", m.Class, m.Name)
	write(&key, m.Parameters...)
	write(&content, m.Modifier, m.Return)
	write(&content, m.Annotations...)
	write(&content, m.Exceptions...)
	name := m.Class + "." + m.Name + "(" + strings.Join(m.Parameters, ", ") + ")"
	if what := p.inventory.see(r, key.String(), name, content.String()); what != changeNone {
		p.env.saidMethod(p.origin, r.task, m, what)
	}
}

// write writes texts so that no others give the same.
func write(to *strings.Builder, texts ...string) {
	for _, text := range texts {
		to.WriteString(text)
		to.WriteByte(0)
	}
	to.WriteByte(1)
}

// listed is told that a run has ended that listed classes or methods: complete says that
// all were said. What is no longer there is said.
func (p *process) listed(r *run, complete bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !complete {
		return
	}
	for _, name := range p.inventory.gone(r) {
		p.env.saidGone(p.origin, r.task, name)
	}
}
