// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/runmemory"
)

// ErrMemory is the error for a name that does not fit into the memory of the run, which is full then.
var ErrMemory = errors.New("there is no memory for a name")

// names are the methods, exceptions and threads of a run, as map messages on any
// of its connections say. Connections remember what they found here
// (namecache.go) and look at the counters to see whether it still holds.
type names struct {
	memory *runmemory.Memory
	// arrivals counts map messages that events may have waited for; remaps those
	// that gave a known method or exception another text.
	arrivals, remaps atomic.Uint32

	mu sync.RWMutex
	// signatures has one function for each text, whatever its IDs.
	signatures map[string]*callevent.Function
	methods    map[uint32]*callevent.Function
	exceptions map[uint32]string
	threads    map[uint16]threadName
	numbers    threadNumbers
	// numbered are the methods whose name did not come in time.
	numbered map[uint32]*callevent.Function
	// taken is how many bytes of memory they have.
	taken int
}

func newNames(m *runmemory.Memory) *names {
	return &names{
		memory:     m,
		signatures: map[string]*callevent.Function{},
		methods:    map[uint32]*callevent.Function{},
		exceptions: map[uint32]string{},
		threads:    map[uint16]threadName{},
		numbered:   map[uint32]*callevent.Function{},
	}
}

// What names take beside their texts, roughly: their place in a map, which is half empty
// to nearly full, and what it points to.
const (
	idBytes        = 28
	exceptionBytes = 48
	functionBytes  = 48 + int(unsafe.Sizeof(callevent.Function{}))
	threadBytes    = 48 + int(unsafe.Sizeof(threadName{}))
	// numberedBytes has the text, too.
	numberedBytes = 48 + functionBytes
)

// textBytes is what the texts of a method take. They share memory: the display name is a
// part of the signature, and so is the qualified name of a class without a package.
func textBytes(signature string, name bytefrog.MethodName) int {
	if strings.HasPrefix(signature, name.Qualified) {
		return len(signature)
	}
	return len(signature) + len(name.Qualified)
}

// take takes memory for names. The lock is held.
func (n *names) take(bytes int) bool {
	if !n.memory.Require(bytes) {
		return false
	}
	n.taken += bytes
	return true
}

// give gives memory back. The lock is held.
func (n *names) give(bytes int) {
	n.taken -= bytes
	n.memory.Return(bytes)
}

// drop drops all names and gives their memory back. Nothing can be named any more: the
// memory is full, or nothing is left to be named.
func (n *names) drop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.signatures, n.methods, n.numbered = map[string]*callevent.Function{}, map[uint32]*callevent.Function{}, map[uint32]*callevent.Function{}
	n.exceptions, n.threads, n.numbers = map[uint32]string{}, map[uint16]threadName{}, threadNumbers{}
	n.give(n.taken)
}

// mapMethod gives a method ID its signature, and reports whether it had another
// one. The error is ErrMemory.
func (n *names) mapMethod(id uint32, signature string) (remapped bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f, ok := n.signatures[signature]
	if !ok {
		name := bytefrog.ParseMethodSignature(signature)
		if !n.take(functionBytes + textBytes(signature, name)) {
			return false, ErrMemory
		}
		f = &callevent.Function{Qualified: name.Qualified, Display: name.Display, Text: signature}
		n.signatures[signature] = f
	}
	old, known := n.methods[id]
	if old == f {
		return false, nil
	}
	if !known && !n.take(idBytes) {
		return false, ErrMemory
	}
	n.methods[id] = f
	n.changed(known)
	return known, nil
}

// mapException gives an exception ID its class, and reports whether it had
// another one. The error is ErrMemory.
func (n *names) mapException(id uint32, class string) (remapped bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	old, known := n.exceptions[id]
	if known && old == class {
		return false, nil
	}
	if !n.take(exceptionBytes + len(class)) {
		return false, ErrMemory
	}
	if known {
		n.give(exceptionBytes + len(old))
	}
	n.exceptions[id] = class
	n.changed(known)
	return known, nil
}

// changed says that a method or an exception has a name now, or another one.
func (n *names) changed(remapped bool) {
	if remapped {
		n.remaps.Add(1)
	}
	n.arrivals.Add(1)
}

// mapThread gives a thread a name from a time on, in ticks. It reports whether the name
// is the first of the thread's ID, as far as is known, and whether the ID has been reused:
// the name is another thread's. The error is ErrMemory.
func (n *names) mapThread(thread uint16, from int64, name string) (first, reused bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	old, known := n.threads[thread]
	number, reused := n.numbers.number(thread, old.number, known, len(n.threads))
	latest := threadName{name: name, first: from, from: from, number: number}
	switch {
	case !known:
		if !n.take(threadBytes + len(name)) {
			return false, false, ErrMemory
		}
		n.arrivals.Add(1)
	case from < old.from:
		// It was overtaken by a later one.
		latest = old
		latest.number = number
		latest.first = min(old.first, from)
	default:
		if !n.take(len(name)) {
			return false, false, ErrMemory
		}
		n.give(len(old.name))
		latest.first = old.first
	}
	n.threads[thread] = latest
	n.numbers.catchUp(n.threads)
	return !known || from < old.first, reused, nil
}

// method gives what a method ID stands for, or nil.
func (n *names) method(id uint32) *callevent.Function {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if f, ok := n.numbered[id]; ok {
		return f
	}
	return n.methods[id]
}

// exception gives what an exception ID stands for.
func (n *names) exception(id uint32) (class string, ok bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	class, ok = n.exceptions[id]
	return class, ok
}

// thread gives the latest name of a thread.
func (n *names) thread(thread uint16) (name string, ok bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	t, ok := n.threads[thread]
	return t.name, ok
}

// nameless is the method of an ID whose name is not known.
var nameless = &callevent.Function{Qualified: "unknown.method", Display: "unknown.method"}

// numberedMethod gives a method that is called by its ID, unless its name has just
// come. It is called so for the rest of the run: a call that was entered by number
// and left by name would be two. When there is no memory left, all such methods are
// one.
func (n *names) numberedMethod(id uint32) *callevent.Function {
	n.mu.Lock()
	defer n.mu.Unlock()
	if f, ok := n.numbered[id]; ok {
		return f
	}
	if f, ok := n.methods[id]; ok {
		return f
	}
	if !n.memory.Reserve(numberedBytes) {
		return nameless
	}
	n.taken += numberedBytes
	name := "unknown.method#" + strconv.FormatUint(uint64(id), 10)
	f := &callevent.Function{Qualified: name, Display: name}
	n.numbered[id] = f
	return f
}
