// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkit

// envelope is what messages and events have in common (section "Message frames"): the map
// around the payload.
type envelope struct {
	number     uint64 // of the type
	millis     int64
	counter    uint64
	hasCounter bool
	// correlation and complete are those of a part of a dump.
	correlation, complete uint64
	hasPayload            bool
	// after is where the map ends; 0: where its payload does, which is its last entry.
	after int
}

// envelope reads a map up to its payload, which is read next where there is one; leave
// has to follow it. Servers send the payload last; where it isn't, the entries behind it
// are read first, since they say what it is.
func (r *reader) envelope() (e envelope, err error) {
	n, err := r.mapping("a map")
	if err != nil {
		return e, err
	}
	payload := 0
	hasType, hasTime := false, false
	for i := range n {
		key, err := r.key()
		if err != nil {
			return e, err
		}
		switch key {
		case keyType:
			e.number, err = r.uint("the number of a type")
			hasType = true
		case keyTime:
			e.millis, err = r.time()
			hasTime = true
		case keyPayload:
			e.hasPayload = true
			if i < n-1 {
				payload = r.at
				err = r.skip("a payload")
			}
		case keyCounter:
			e.counter, err = r.uint("the number of a message")
			e.hasCounter = true
		case keyCorrelation:
			e.correlation, err = r.uint("the number of a dump")
		case keyComplete:
			e.complete, err = r.uint("the number of objects of a dump")
		default:
			err = r.skip("a value")
		}
		if err != nil {
			return e, err
		}
	}
	if !hasType || !hasTime {
		return e, r.fail(FaultMessage, "a type and a time", "a map without")
	}
	if payload > 0 {
		e.after, r.at = r.at, payload
	}
	return e, nil
}

// leave goes on behind the map, when its payload was read.
func (r *reader) leave(e *envelope) {
	if e.after > 0 {
		r.at = e.after
	}
}
