// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import "sync/atomic"

// budget is the memory that a run can have for what its agent makes it hold:
// names, events that wait for names, batches that the pipeline refused.
type budget struct {
	limit int64
	used  atomic.Int64
}

// takeOfHalf takes bytes, if no more than half of the limit is used then.
func (b *budget) takeOfHalf(bytes int) bool {
	if b.used.Load() > b.limit/2 {
		return false
	}
	return b.take(bytes)
}

// take takes bytes, all or none.
func (b *budget) take(bytes int) bool {
	if b.used.Add(int64(bytes)) > b.limit {
		b.used.Add(-int64(bytes))
		return false
	}
	return true
}

// give gives bytes back.
func (b *budget) give(bytes int) { b.used.Add(-int64(bytes)) }
