// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"slices"
	"sync"
	"unsafe"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

// pendingRenames are the renames of a run that their connections have not sent yet. Every batch of any connection carries all of
// them: the events under a new name are mostly on another connection than the rename, and the processor must not pair them first.
type pendingRenames struct {
	mu sync.Mutex
	// count is the number of renames of the run so far.
	count   uint32
	pending []pendingRename
}

// pendingRename is a rename, the packer of the connection that read it, and the bytes of memory that it reserved.
type pendingRename struct {
	rename callevent.Rename
	of     *Packer
	bytes  int
}

const (
	// pendingRenameBytes is about the memory of a pending rename, without its name.
	pendingRenameBytes = int(unsafe.Sizeof(pendingRename{}))
	// maxOwnRenames is the number of renames with which a connection sends its batch.
	maxOwnRenames = 32
)

// add adds a rename that a connection has read, and sets its rank.
func (p *pendingRenames) add(r callevent.Rename, of *Packer, bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count++
	r.Rank = p.count
	p.pending = append(p.pending, pendingRename{rename: r, of: of, bytes: bytes})
}

// appendAll appends all pending renames to dst.
func (p *pendingRenames) appendAll(dst []callevent.Rename) []callevent.Rename {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.pending {
		dst = append(dst, p.pending[i].rename)
	}
	return dst
}

// removeSent removes the renames of a connection, which has sent them. It returns the bytes that they had reserved.
func (p *pendingRenames) removeSent(of *Packer) (bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pending = slices.DeleteFunc(p.pending, func(n pendingRename) bool {
		if n.of == of {
			bytes += n.bytes
		}
		return n.of == of
	})
	return bytes
}
