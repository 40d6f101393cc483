// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import "github.com/callbraid/callbraid/internal/lttng/ctf"

// inputKind is what a stream was told.
type inputKind uint8

const (
	inputPacket inputKind = iota
	inputPromise
	inputLose
	inputAgain
)

// input is something that a stream was told, and that comes up when all before it was
// read.
type input struct {
	kind   inputKind
	cause  Cause
	packet []byte
	index  *Index
	// class and cycles are those of a promise.
	class, cycles uint64
}

// queue is the inputs that have not come up.
type queue struct {
	inputs []input
	taken  int
}

func (q *queue) empty() bool { return q.taken == len(q.inputs) }

func (q *queue) push(in input) {
	if q.taken > 0 && q.taken >= len(q.inputs)/2 {
		n := copy(q.inputs, q.inputs[q.taken:])
		clear(q.inputs[n:])
		q.inputs, q.taken = q.inputs[:n], 0
	}
	q.inputs = append(q.inputs, in)
}

// front returns the next input, back the last one. There must be one.
func (q *queue) front() *input { return &q.inputs[q.taken] }
func (q *queue) back() *input  { return &q.inputs[len(q.inputs)-1] }

func (q *queue) pop() {
	q.inputs[q.taken] = input{}
	q.taken++
}

// classOf returns the stream class of that ID; nil if it isn't known yet.
func classOf(t *ctf.Trace, id uint64) *ctf.StreamClass {
	for _, c := range t.StreamClasses() {
		if c.ID == id {
			return c
		}
	}
	return nil
}
