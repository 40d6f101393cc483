// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"slices"
	"sync"
	"unsafe"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// tidings are the renames of a run that the connection on which they came has not
// handed on yet. Whatever connection closes a batch gives it all of them: the events
// that a rename is for are mostly on another connection than the rename is, and would
// be paired before it is told.
type tidings struct {
	mu sync.Mutex
	// heard is how many renames there have been.
	heard uint32
	news  []tiding
}

// tiding is a rename, and whose it is.
type tiding struct {
	rename callevent.Rename
	of     *batcher
}

// tidingBytes is about what a rename that waits takes beside its name.
const tidingBytes = int(unsafe.Sizeof(tiding{}) + unsafe.Sizeof(unplacedRename{}))

// order gives a rename that is heard of its order.
func (t *tidings) order() uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.heard++
	return t.heard
}

// add adds a rename of which better is to be told.
func (t *tidings) add(of *batcher, r callevent.Rename) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.Provisional = true
	t.news = append(t.news, tiding{rename: r, of: of})
}

// better says what takes the place of the provisional rename of its order, and is in
// the batch that its connection packs.
func (t *tidings) better(r callevent.Rename) {
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
func (t *tidings) beside(of *batcher, dst []callevent.Rename) []callevent.Rename {
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
func (t *tidings) handedOn(of *batcher) (bytes int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.news = slices.DeleteFunc(t.news, func(n tiding) bool {
		done := n.of == of && !n.rename.Provisional
		if done {
			bytes += tidingBytes + len(n.rename.Name)
		}
		return done
	})
	return bytes
}
