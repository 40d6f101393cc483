// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

// objects counts objects that were created and destroyed, by class.
type objects struct {
	classes *names
	tracked tracked
	// created and destroyed are by the numbers of classes.
	created, destroyed counts
}

// counts are numbers by the numbers of names.
type counts []int64

// add adds n to that of a name.
func (c *counts) add(name int32, n int64) {
	for int(name) >= len(*c) {
		*c = append(*c, 0)
	}
	(*c)[name] += n
}

func newObjects(classes *names, maxTracked int) *objects {
	return &objects{classes: classes, tracked: newTracked(maxTracked)}
}

func (o *objects) create(id uint64, class []byte) {
	number := o.classes.class(class)
	o.created.add(number, 1)
	o.tracked.add(id, number)
}

func (o *objects) destroy(id uint64) { o.destroyed.add(o.tracked.remove(id), 1) }

// tracked remembers of which class objects are. There are two generations: where the
// young one has its half of what may be remembered it becomes the old one, and what was
// the old one is forgotten.
type tracked struct {
	half       int
	young, old map[uint64]int32
	// forgotten counts objects that were forgotten.
	forgotten int64
}

func newTracked(limit int) tracked {
	return tracked{half: max(limit/2, 1), young: map[uint64]int32{}, old: map[uint64]int32{}}
}

func (t *tracked) add(id uint64, class int32) {
	if len(t.young) >= t.half {
		t.forgotten += int64(len(t.old))
		t.old, t.young = t.young, t.old
		clear(t.young)
	}
	t.young[id] = class
}

// remove forgets an object and says of which class it was.
func (t *tracked) remove(id uint64) int32 {
	for _, generation := range [...]map[uint64]int32{t.young, t.old} {
		if class, ok := generation[id]; ok {
			delete(generation, id)
			return class
		}
	}
	return nameUnknown
}

func (t *tracked) len() int { return len(t.young) + len(t.old) }
