// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

// traces are the traces that open frames and lanes refer to.
type traces struct {
	all  []trace
	free []uint32
}

// trace is a trace while something refers to it.
type trace struct {
	// root is the number of the entry that began it.
	root uint64
	// frames counts its frames, open and finished, without those left out.
	frames int
	// references by open frames and lanes.
	references int
}

// noTrace stands for no trace.
const noTrace = ^uint32(0)

// begin gives a trace without frames that is referred to once.
func (t *traces) begin(root uint64) uint32 {
	if n := len(t.free); n > 0 {
		id := t.free[n-1]
		t.free = t.free[:n-1]
		t.all[id] = trace{root: root, references: 1}
		return id
	}
	t.all = append(t.all, trace{root: root, references: 1})
	return uint32(len(t.all) - 1)
}

func (t *traces) refer(id uint32) { t.all[id].references++ }

func (t *traces) release(id uint32) {
	if id == noTrace {
		return
	}
	if t.all[id].references--; t.all[id].references == 0 {
		t.free = append(t.free, id)
	}
}
