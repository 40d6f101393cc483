// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

// openTraces are the traces of open frames, and the continuations of lanes. Rule 9 puts frames into
// them. A trace that ends is decided.
type openTraces struct {
	settings *Settings
	names    *names
	// undecided has the finished calls of Settings.Keep; nil: they are written to the output.
	undecided *undecided

	all  []openTrace
	free []uint32
}

// openTrace is a trace that has references.
type openTrace struct {
	// root is the sequence number of its first entry.
	root uint64
	// frames counts its frames, open and finished, without those left out.
	frames int
	// references by open frames and lanes.
	references int
}

// choose puts the top frame of the lane, number depth, into a trace: rule 9. A frame of a shared lane
// has number 0.
func (t *openTraces) choose(l *lane, f *frame, depth int, out *Output) {
	tooDeep := t.settings.MaxDepth > 0 && depth >= t.settings.MaxDepth
	if tooDeep || depth > 0 && l.frames[depth-1].trace == noTrace {
		f.trace = noTrace
		return
	}
	limit := t.settings.MaxSpansPerTrace
	switch {
	case depth == 0:
		f.trace = t.begin(f.sequence)
	case t.names.functions[f.function].root:
		f.trace, f.link = t.begin(f.sequence), LinkTraceRoot
	case !t.isFull(l.frames[depth-1].trace, limit):
		f.trace = l.frames[depth-1].trace
		t.refer(f.trace)
	default:
		if l.continuation == noTrace || t.isFull(l.continuation, limit) {
			t.release(l.continuation, out)
			l.continuation = t.begin(f.sequence)
		}
		f.trace, f.link = l.continuation, LinkContinuation
		t.refer(f.trace)
	}
	t.all[f.trace].frames++
}

// begin returns a new trace without frames and with one reference.
func (t *openTraces) begin(root uint64) uint32 {
	if n := len(t.free); n > 0 {
		id := t.free[n-1]
		t.free = t.free[:n-1]
		t.all[id] = openTrace{root: root, references: 1}
		return id
	}
	t.all = append(t.all, openTrace{root: root, references: 1})
	return uint32(len(t.all) - 1)
}

func (t *openTraces) refer(id uint32) { t.all[id].references++ }

// isFull reports whether the trace has as many frames as the limit allows; 0: no limit.
func (t *openTraces) isFull(id uint32, limit int) bool { return limit > 0 && t.all[id].frames >= limit }

// leaveOut makes a frame not count in its trace.
func (t *openTraces) leaveOut(id uint32) { t.all[id].frames-- }

// release removes a reference, unless the trace is noTrace. A trace without references has ended, and is
// decided.
func (t *openTraces) release(id uint32, out *Output) {
	if id == noTrace {
		return
	}
	of := &t.all[id]
	if of.references--; of.references > 0 {
		return
	}
	t.free = append(t.free, id)
	if t.undecided != nil {
		t.undecided.decide(id, of.root, true, out)
	}
}

// rootOf is the root of the trace of a frame.
func (t *openTraces) rootOf(f *frame) uint64 { return t.all[f.trace].root }
