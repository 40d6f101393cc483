// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

// traces are the traces of open frames, and the continuations of lanes.
type traces struct {
	all  []trace
	free []uint32
}

// trace is a trace that has references.
type trace struct {
	// root is the sequence number of its first entry.
	root uint64
	// frames counts its frames, open and finished, without those left out.
	frames int
	// references by open frames and lanes.
	references int
}

// noTrace stands for no trace.
const noTrace = ^uint32(0)

// begin returns a new trace without frames and with one reference.
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

// release removes a reference, and reports whether it was the last. The trace's root is known
// until the next one begins.
func (t *traces) release(id uint32) (ended bool) {
	if id == noTrace {
		return false
	}
	of := &t.all[id]
	if of.references--; of.references == 0 {
		t.free = append(t.free, id)
		return true
	}
	return false
}

// leaveOut is release for a frame that does not count in its trace.
func (t *traces) leaveOut(id uint32) (ended bool) {
	t.all[id].frames--
	return t.release(id)
}

// isFull reports whether the trace has as many frames as the limit allows; 0: no limit.
func (t *traces) isFull(id uint32, limit int) bool { return limit > 0 && t.all[id].frames >= limit }
