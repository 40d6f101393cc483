// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"

	"github.com/callbraid/callbraid/internal/arthas"
)

// The server keeps the objects of recorded calls in the memory of the program. So the link deletes its own, one after
// another, beside the commands: a deletion takes 0.1 s of a thread that serves all clients.

// maxForgotten is the number of recorded calls that wait for their deletion. It is more than one command records.
const maxForgotten = 4096

// recordOf is a recorded call in one life of the program. Another life has other calls with the same numbers.
type recordOf struct {
	index int32
	life  int
}

// forget queues recorded calls for their deletion.
func (l *link) forget(calls []arthas.Record, life int) {
	for i := range calls {
		select {
		case l.forgotten <- recordOf{calls[i].Index, life}:
		default:
			l.Count(CountRecordsKept, 1)
		}
	}
}

// forgetAll deletes the queued recorded calls until the queue is closed. After the loss of the server it only counts them.
func (l *link) forgetAll() {
	lost := false
	for of := range l.forgotten {
		if of.life != l.currentLife() {
			continue // they ended with the program
		}
		var err error
		if !lost {
			_, err = l.exec(l.ctx, arthas.ForgetRecordCommand{Index: of.index})
			failed := (*arthas.CommandError)(nil)
			lost = err != nil && !errors.As(err, &failed)
		}
		if lost || err != nil {
			l.Count(CountRecordsKept, 1)
		}
	}
}

// currentLife returns the number of the program's life.
func (l *link) currentLife() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.life
}
