// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/callevent"
)

// errRunMemory: a run holds all that limits.max_run_memory allows.
var errRunMemory = errors.New("limits.max_run_memory is reached")

// names are the methods, exceptions and threads of a run, as map messages on any
// of its connections say. Connections remember what they found here
// (namecache.go) and look at the counters to see whether it still holds.
type names struct {
	budget *budget
	// arrivals counts map messages; remaps those that gave a known method or
	// exception another text; renames those that gave a known thread another name.
	arrivals, remaps, renames atomic.Uint32

	mu sync.RWMutex
	// signatures has one function for each text, whatever its IDs.
	signatures map[string]*callevent.Function
	methods    map[uint32]*callevent.Function
	exceptions map[uint32]string
	threads    map[uint16]threadNames
	// numbered are the methods whose name did not come in time.
	numbered map[uint32]*callevent.Function
}

func newNames(b *budget) *names {
	return &names{
		budget:     b,
		signatures: map[string]*callevent.Function{},
		methods:    map[uint32]*callevent.Function{},
		exceptions: map[uint32]string{},
		threads:    map[uint16]threadNames{},
		numbered:   map[uint32]*callevent.Function{},
	}
}

// What an entry of the maps costs beside its text, roughly: the map's own share
// and headers.
const (
	idBytes       = 48
	functionBytes = idBytes + int(unsafe.Sizeof(callevent.Function{}))
	threadBytes   = 2 * int(unsafe.Sizeof(threadName{}))
)

// mapMethod gives a method ID its signature, and reports whether it had another
// one. The error is errRunMemory.
func (n *names) mapMethod(id uint32, signature string) (remapped bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f, ok := n.signatures[signature]
	if !ok {
		// The text itself, the qualified name that is built from it, the map's key.
		if !n.budget.take(functionBytes + 2*len(signature)) {
			return false, errRunMemory
		}
		name := bytefrog.ParseMethodSignature(signature)
		f = &callevent.Function{Qualified: name.Qualified, Display: name.Display, Text: signature}
		n.signatures[signature] = f
	}
	old, known := n.methods[id]
	if old == f {
		return false, nil
	}
	if !known && !n.budget.take(idBytes) {
		return false, errRunMemory
	}
	n.methods[id] = f
	n.changed(known)
	return known, nil
}

// mapException gives an exception ID its class, and reports whether it had
// another one. The error is errRunMemory.
func (n *names) mapException(id uint32, class string) (remapped bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	old, known := n.exceptions[id]
	if known && old == class {
		return false, nil
	}
	if !n.budget.take(idBytes + len(class)) {
		return false, errRunMemory
	}
	if known {
		n.budget.give(idBytes + len(old))
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

// mapThread gives a thread a name from a time on, in ticks. The error is
// errRunMemory.
func (n *names) mapThread(thread uint16, from int64, name string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.budget.take(threadBytes + len(name)) {
		return errRunMemory
	}
	old := n.threads[thread]
	history, forgotten := old.with(threadName{from: from, name: name})
	n.budget.give(forgotten)
	n.threads[thread] = history
	if len(old) > 0 {
		n.renames.Add(1)
	}
	n.arrivals.Add(1)
	return nil
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

// thread gives the name of a thread at a time, and the times from and before
// which it holds.
func (n *names) thread(thread uint16, at int64) (name string, from, before int64, ok bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.threads[thread].at(at)
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
	if !n.budget.take(idBytes + functionBytes) {
		return nameless
	}
	name := "unknown.method#" + strconv.FormatUint(uint64(id), 10)
	f := &callevent.Function{Qualified: name, Display: name}
	n.numbered[id] = f
	return f
}

// threadName is a name and the time, in ticks, from which a thread has it.
type threadName struct {
	from int64
	name string
}

// threadNames are the latest names of one thread by time. It is never changed.
type threadNames []threadName

// maxThreadNames is how many names of a thread are remembered: there are
// programs that rename their threads with every request, and an event can come
// some renamings after its turn.
const maxThreadNames = 64

// with gives the names with another one, and how many bytes of others it forgot.
func (t threadNames) with(name threadName) (all threadNames, forgotten int) {
	i, same := slices.BinarySearchFunc(t, name.from, func(n threadName, from int64) int {
		if n.from < from {
			return -1
		} else if n.from > from {
			return 1
		}
		return 0
	})
	all = slices.Grow(append(threadNames(nil), t...), 1)
	if same {
		forgotten = threadBytes + len(all[i].name)
		all[i] = name
		return all, forgotten
	}
	all = slices.Insert(all, i, name)
	if len(all) > maxThreadNames {
		forgotten = threadBytes + len(all[0].name)
		all = all[1:]
	}
	return all, forgotten
}

// at gives the name at a time: the latest that begins then or before, and the
// earliest known one for times before that.
func (t threadNames) at(at int64) (name string, from, before int64, ok bool) {
	if len(t) == 0 {
		return "", 0, 0, false
	}
	i := len(t) - 1
	for i > 0 && t[i].from > at {
		i--
	}
	from, before = t[i].from, math.MaxInt64
	if i == 0 {
		from = math.MinInt64
	}
	if i+1 < len(t) {
		before = t[i+1].from
	}
	return t[i].name, from, before, true
}
