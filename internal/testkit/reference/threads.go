// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package reference

// ThreadName is the name of a thread from a time on, in milliseconds.
type ThreadName struct {
	Name string
	Time uint32
}

// ThreadName is the name of the event's thread at the time of the event: the last name that is not later, or the thread's first
// name.
func (r *Run) ThreadName(e Event) string {
	name := ""
	for i, n := range r.Threads[e.Thread] {
		if i == 0 || n.Time <= e.Time {
			name = n.Name
		}
	}
	return name
}
