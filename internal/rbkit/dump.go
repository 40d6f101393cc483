// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkit

// dumpPart reads a part of a dump (section "Message frame for OBJECT_SPACE_DUMP"). What
// the section calls complete_message_count is the number of objects of all parts.
func (d *Decoder) dumpPart(e *envelope) error {
	n, err := d.in.array("an array of objects")
	if err != nil {
		return err
	}
	d.visitor.DumpPart(e.millis, DumpPart{Correlation: e.correlation, Complete: e.complete, Objects: n})
	for range n {
		if !d.plainDumped() {
			if err := d.dumpedObject(); err != nil {
				return err
			}
		}
		d.visitor.DumpObject(&d.object)
	}
	return nil
}

func (d *Decoder) dumpedObject() error {
	n, err := d.in.mapping("a map of an object")
	if err != nil {
		return err
	}
	d.object = DumpedObject{}
	o, hasID := &d.object, false
	for range n {
		key, err := d.in.key()
		if err != nil {
			return err
		}
		switch key {
		case keyObjectID:
			o.ID, err = d.in.uint("an object ID")
			hasID = true
		case keyClass:
			o.Class, err = d.in.text("the name of a class")
		case keyReferences:
			o.References, err = d.references()
		case keyFile:
			o.File, err = d.in.text("a file")
		case keyLine:
			o.Line, o.HasLine, err = d.in.uintOrNil("a line")
		case keySize:
			o.Size, o.HasSize, err = d.in.uintOrNil("the size of an object")
		default:
			err = d.in.skip("a value")
		}
		if err != nil {
			return err
		}
	}
	if !hasID {
		return d.in.fail(FaultMessage, "an object ID", "a map without")
	}
	return nil
}

// references reads past IDs, and remembers where they are.
func (d *Decoder) references() (r References, err error) {
	if d.in.isNil() {
		return r, nil
	}
	if r.n, err = d.in.array("an array of object IDs"); err != nil {
		return References{}, err
	}
	begin := d.in.at
	if err := d.in.uints(uint64(r.n), "an object ID"); err != nil {
		return References{}, err
	}
	r.packed = d.in.all[begin:d.in.at]
	return r, nil
}
