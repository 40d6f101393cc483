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

// names are the methods, exceptions and threads of a run, from the map messages of all its connections. Connections
// cache names (namecache.go), and compare the counters to learn whether a cached name is still right.
type names struct {
	memory *runmemory.Memory
	// arrivals counts new names, for which events may wait. remaps counts known methods and exceptions that got
	// another name.
	arrivals, remaps atomic.Uint32

	mu sync.RWMutex
	// signatures has one function for each text, even if it has several IDs.
	signatures map[string]*callevent.Function
	methods    map[uint32]*callevent.Function
	exceptions map[uint32]string
	threads    map[uint16]threadName
	numbers    threadNumbers
	// numbered are the methods whose names did not arrive in time.
	numbered map[uint32]*callevent.Function
	// reserved is the number of bytes that all names have reserved.
	reserved int
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

// The memory of names beside their texts, roughly: the place in a map, which is between half empty and nearly full,
// and the value.
const (
	idBytes        = 28
	exceptionBytes = 48
	functionBytes  = 48 + int(unsafe.Sizeof(callevent.Function{}))
	threadBytes    = 48 + int(unsafe.Sizeof(threadName{}))
	// numberedBytes includes the text.
	numberedBytes = 48 + functionBytes
)

// textBytes is the memory of a method's texts. They share memory: the display name is a part of the signature, and so
// is the qualified name of a class without a package.
func textBytes(signature string, name bytefrog.MethodName) int {
	if strings.HasPrefix(signature, name.Qualified) {
		return len(signature)
	}
	return len(signature) + len(name.Qualified)
}

// reserve reserves memory for names. The caller has the lock.
func (n *names) reserve(bytes int) bool {
	if !n.memory.Require(bytes) {
		return false
	}
	n.reserved += bytes
	return true
}

// release returns memory. The caller has the lock.
func (n *names) release(bytes int) {
	n.reserved -= bytes
	n.memory.Return(bytes)
}

// drop drops all names and returns their memory, because the memory is full or no event needs a name.
func (n *names) drop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.signatures, n.methods, n.numbered = map[string]*callevent.Function{}, map[uint32]*callevent.Function{}, map[uint32]*callevent.Function{}
	n.exceptions, n.threads, n.numbers = map[uint32]string{}, map[uint16]threadName{}, threadNumbers{}
	n.release(n.reserved)
}

// mapMethod sets the signature of a method ID, and reports whether the ID had another one. The error is ErrMemory.
func (n *names) mapMethod(id uint32, signature string) (remapped bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f, ok := n.signatures[signature]
	if !ok {
		name := bytefrog.ParseMethodSignature(signature)
		if !n.reserve(functionBytes + textBytes(signature, name)) {
			return false, ErrMemory
		}
		f = &callevent.Function{Qualified: name.Qualified, Display: name.Display, Text: signature}
		n.signatures[signature] = f
	}
	old, known := n.methods[id]
	if old == f {
		return false, nil
	}
	if !known && !n.reserve(idBytes) {
		return false, ErrMemory
	}
	n.methods[id] = f
	n.changed(known)
	return known, nil
}

// mapException sets the class of an exception ID, and reports whether the ID had another one. The error is ErrMemory.
func (n *names) mapException(id uint32, class string) (remapped bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	old, known := n.exceptions[id]
	if known && old == class {
		return false, nil
	}
	if !n.reserve(exceptionBytes + len(class)) {
		return false, ErrMemory
	}
	if known {
		n.release(exceptionBytes + len(old))
	}
	n.exceptions[id] = class
	n.changed(known)
	return known, nil
}

// changed counts the new name of a method or an exception. With remapped it replaces another name.
func (n *names) changed(remapped bool) {
	if remapped {
		n.remaps.Add(1)
	}
	n.arrivals.Add(1)
}

// mapThread sets the name of a thread from a time on, in ticks. It reports whether no earlier name of the ID is
// known, and whether the ID is reused: the name belongs to another thread. The error is ErrMemory.
func (n *names) mapThread(thread uint16, from int64, name string) (first, reused bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	old, known := n.threads[thread]
	number, reused := n.numbers.number(thread, old.number, known, len(n.threads))
	latest := threadName{name: name, first: from, from: from, number: number}
	switch {
	case !known:
		if !n.reserve(threadBytes + len(name)) {
			return false, false, ErrMemory
		}
		n.arrivals.Add(1)
	case from < old.from:
		// A later name has arrived before it.
		latest = old
		latest.number = number
		latest.first = min(old.first, from)
	default:
		if !n.reserve(len(name)) {
			return false, false, ErrMemory
		}
		n.release(len(old.name))
		latest.first = old.first
	}
	n.threads[thread] = latest
	n.numbers.catchUp(n.threads)
	return !known || from < old.first, reused, nil
}

// method is the method of an ID, or nil.
func (n *names) method(id uint32) *callevent.Function {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if f, ok := n.numbered[id]; ok {
		return f
	}
	return n.methods[id]
}

// exception is the class of an exception ID.
func (n *names) exception(id uint32) (class string, ok bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	class, ok = n.exceptions[id]
	return class, ok
}

// thread is the latest name of a thread.
func (n *names) thread(thread uint16) (name string, ok bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	t, ok := n.threads[thread]
	return t.name, ok
}

// nameless is the method of an ID whose name is not known.
var nameless = &callevent.Function{Qualified: "unknown.method", Display: "unknown.method"}

// numberedMethod is a method with its ID as its name, unless its name has just arrived. It has this name for the rest
// of the run: otherwise the entry and the exit of a call could have different names. Without memory, all such methods
// are one.
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
	n.reserved += numberedBytes
	name := "unknown.method#" + strconv.FormatUint(uint64(id), 10)
	f := &callevent.Function{Qualified: name, Display: name}
	n.numbered[id] = f
	return f
}
