// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import "github.com/callbraid/callbraid/internal/lttng/ctf"

// inputKind is the kind of a stream's input.
type inputKind uint8

const (
	inputPacket inputKind = iota
	inputPromise
	inputLoss
	inputReplay
)

// input is one input of a stream. The stream processes it after all earlier ones.
type input struct {
	kind   inputKind
	cause  Cause
	packet []byte
	index  *Index
	// class and cycles belong to a promise.
	class, cycles uint64
}

// queue holds the inputs that the stream has not processed.
type queue struct {
	inputs []input
	popped int
}

func (q *queue) empty() bool { return q.popped == len(q.inputs) }

func (q *queue) push(in input) {
	if q.popped > 0 && q.popped >= len(q.inputs)/2 {
		n := copy(q.inputs, q.inputs[q.popped:])
		clear(q.inputs[n:])
		q.inputs, q.popped = q.inputs[:n], 0
	}
	q.inputs = append(q.inputs, in)
}

// front returns the next input, back the last one. The queue must not be empty.
func (q *queue) front() *input { return &q.inputs[q.popped] }
func (q *queue) back() *input  { return &q.inputs[len(q.inputs)-1] }

func (q *queue) pop() {
	q.inputs[q.popped] = input{}
	q.popped++
}

// classOf returns the stream class with that ID, or nil if it is not known yet.
func classOf(t *ctf.Trace, id uint64) *ctf.StreamClass {
	for _, c := range t.StreamClasses() {
		if c.ID == id {
			return c
		}
	}
	return nil
}
