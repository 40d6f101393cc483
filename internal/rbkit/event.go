// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkit

// event reads an event of a collection and tells the visitor of it.
func (d *Decoder) event(dialect Dialect) error {
	e, err := d.in.envelope()
	if err != nil {
		return err
	}
	t := dialect.typeOf(e.number)
	switch t {
	case GCStart, GCEndMark, GCEndSweep:
		d.visitor.GC(e.millis, t)
		if e.hasPayload {
			err = d.in.skip("a payload")
		}
	case unknownType, EventCollection, HandshakeReply:
		d.visitor.Unknown(e.millis, e.number)
		if e.hasPayload {
			err = d.in.skip("a payload")
		}
	default:
		if !e.hasPayload {
			return d.in.fail(FaultMessage, "an event with a payload", "one without")
		}
		err = d.payload(t, &e)
	}
	if err != nil {
		return err
	}
	d.in.leave(&e)
	return nil
}

// payload reads that of an event which has one.
func (d *Decoder) payload(t Type, e *envelope) error {
	switch t {
	case ObjectCreated, ObjectDestroyed:
		return d.objectEvent(t, e.millis)
	case ObjectSpaceDump:
		return d.dumpPart(e)
	case GCStats:
		return d.gcStats(e.millis)
	case CPUSample:
		frames, err := d.stack()
		if err == nil {
			d.visitor.CPUSample(e.millis, frames)
		}
		return err
	default: // AllocationSnapshot
		return d.snapshot(e.millis)
	}
}

// objectEvent reads that an object was created or destroyed (section "Message frame for
// FREE_OBJECT").
func (d *Decoder) objectEvent(t Type, millis int64) error {
	n, err := d.in.mapping("a map with an object ID")
	if err != nil {
		return err
	}
	var id uint64
	var class []byte
	hasID := false
	for range n {
		key, err := d.in.key()
		if err != nil {
			return err
		}
		switch key {
		case keyObjectID:
			id, err = d.in.uint("an object ID")
			hasID = true
		case keyClass:
			class, err = d.in.text("the name of a class")
		default:
			err = d.in.skip("a value")
		}
		if err != nil {
			return err
		}
	}
	switch {
	case !hasID:
		return d.in.fail(FaultMessage, "an object ID", "a map without")
	case t == ObjectCreated:
		d.visitor.ObjectCreated(millis, id, class)
	default:
		d.visitor.ObjectDestroyed(millis, id)
	}
	return nil
}

// gcStats reads the statistics (section "Message from GC stats"), whose keys are texts.
func (d *Decoder) gcStats(millis int64) error {
	n, err := d.in.mapping("a map of statistics")
	if err != nil {
		return err
	}
	if uint64(n) > uint64(d.limits.Stats) {
		return d.in.tooMany("statistics", d.limits.Stats, n)
	}
	d.stats = d.stats[:0]
	for range n {
		var s Stat
		if s.Key, err = d.in.text("the key of a statistic"); err != nil {
			return err
		}
		if s.Value, s.Known, err = d.in.number(); err != nil {
			return err
		}
		d.stats = append(d.stats, s)
	}
	d.visitor.GCStats(millis, d.stats)
	return nil
}
