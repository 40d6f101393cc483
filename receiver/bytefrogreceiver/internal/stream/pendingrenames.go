// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"slices"
	"sync"
	"unsafe"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// pendingRenames are the renames of a run that their connections have not sent yet. Every batch of
// any connection carries all of them: the events of a rename are mostly on another connection, and
// the processor must not pair them first.
type pendingRenames struct {
	mu sync.Mutex
	// count is how many renames there were.
	count   uint32
	pending []pendingRename
}

// pendingRename is a rename, and the connection that it arrived on.
type pendingRename struct {
	rename callevent.Rename
	of     *unplaced
}

// pendingRenameBytes is about the memory of a pending rename, without its name.
const pendingRenameBytes = int(unsafe.Sizeof(pendingRename{}) + unsafe.Sizeof(unplacedRename{}))

// nextOrder is the order of a new rename.
func (t *pendingRenames) nextOrder() uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count++
	return t.count
}

// add adds a rename, which is provisional.
func (t *pendingRenames) add(of *unplaced, r callevent.Rename) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.Provisional = true
	t.pending = append(t.pending, pendingRename{rename: r, of: of})
}

// replace replaces the provisional rename of the same order. Its connection has packed it.
func (t *pendingRenames) replace(r callevent.Rename) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.pending {
		if t.pending[i].rename.Order == r.Order {
			t.pending[i].rename = r
		}
	}
}

// appendOthers appends to dst the renames that are not in the batch that a connection packs, in order.
func (t *pendingRenames) appendOthers(of *unplaced, dst []callevent.Rename) []callevent.Rename {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.pending {
		if n := &t.pending[i]; n.of != of || n.rename.Provisional {
			dst = append(dst, n.rename)
		}
	}
	return dst
}

// removeSent removes the renames that were in the batch that a connection has sent. It returns
// their bytes.
func (t *pendingRenames) removeSent(of *unplaced) (bytes int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending = slices.DeleteFunc(t.pending, func(n pendingRename) bool {
		done := n.of == of && !n.rename.Provisional
		if done {
			bytes += pendingRenameBytes + len(n.rename.Name)
		}
		return done
	})
	return bytes
}
