// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"slices"
	"sync"
	"unsafe"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// pendingRenames are the renames of a run that the connection on which they came has not
// handed on yet. Whatever connection closes a batch gives it all of them: the events
// that a rename is for are mostly on another connection than the rename is, and would
// be paired before it is told.
type pendingRenames struct {
	mu sync.Mutex
	// heard is how many renames there have been.
	heard uint32
	news  []pendingRename
}

// pendingRename is a rename, and whose it is.
type pendingRename struct {
	rename callevent.Rename
	of     *unplaced
}

// pendingRenameBytes is about what a rename that waits takes beside its name.
const pendingRenameBytes = int(unsafe.Sizeof(pendingRename{}) + unsafe.Sizeof(unplacedRename{}))

// order gives a rename that is heard of its order.
func (t *pendingRenames) order() uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.heard++
	return t.heard
}

// add adds a rename of which better is to be told.
func (t *pendingRenames) add(of *unplaced, r callevent.Rename) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.Provisional = true
	t.news = append(t.news, pendingRename{rename: r, of: of})
}

// better says what takes the place of the provisional rename of its order, and is in
// the batch that its connection packs.
func (t *pendingRenames) better(r callevent.Rename) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.news {
		if t.news[i].rename.Order == r.Order {
			t.news[i].rename = r
		}
	}
}

// beside appends to dst all that is not handed on yet and not in the batch that a
// connection packs, in order.
func (t *pendingRenames) beside(of *unplaced, dst []callevent.Rename) []callevent.Rename {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.news {
		if n := &t.news[i]; n.of != of || n.rename.Provisional {
			dst = append(dst, n.rename)
		}
	}
	return dst
}

// handedOn says that a connection has handed on the batch that it packed, and gives
// the bytes of what needn't be told any more.
func (t *pendingRenames) handedOn(of *unplaced) (bytes int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.news = slices.DeleteFunc(t.news, func(n pendingRename) bool {
		done := n.of == of && !n.rename.Provisional
		if done {
			bytes += pendingRenameBytes + len(n.rename.Name)
		}
		return done
	})
	return bytes
}
