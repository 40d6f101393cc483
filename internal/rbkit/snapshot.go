// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkit

import (
	"bytes"
	"strconv"
)

// hiddenClass is what servers write in the place of a class that Ruby hides.
const hiddenClass = "(null)"

// snapshot reads what was allocated (section "Message frame for allocation_snapshot",
// whose keys are numbers on the wire).
func (d *Decoder) snapshot(millis int64) error {
	n, err := d.in.mapping("a map of a snapshot")
	if err != nil {
		return err
	}
	d.visitor.SnapshotBegin(millis)
	for range n {
		key, err := d.in.key()
		if err != nil {
			return err
		}
		switch key {
		case keyStacks:
			err = d.snapshotStacks()
		case keyAllocations:
			err = d.snapshotFiles()
		default:
			err = d.in.skip("a value")
		}
		if err != nil {
			return err
		}
	}
	d.visitor.SnapshotEnd()
	return nil
}

func (d *Decoder) snapshotStacks() error {
	if d.in.isNil() {
		return nil
	}
	n, err := d.in.mapping("a map of stacks")
	if err != nil {
		return err
	}
	for range n {
		id, err := d.in.uint("the ID of a stack")
		if err != nil {
			return err
		}
		frames, err := d.stack()
		if err != nil {
			return err
		}
		d.visitor.SnapshotStack(id, frames)
	}
	return nil
}

func (d *Decoder) snapshotFiles() error {
	n, err := d.in.mapping("a map of files")
	if err != nil {
		return err
	}
	for range n {
		file, err := d.in.text("a file")
		if err != nil {
			return err
		}
		sites, err := d.in.mapping("a map of lines")
		if err != nil {
			return err
		}
		for range sites {
			d.allocation = Allocation{File: file}
			if err := d.snapshotSite(&d.allocation); err != nil {
				return err
			}
			d.visitor.SnapshotAllocation(&d.allocation)
		}
	}
	return nil
}

// snapshotSite reads what was allocated in a line: its key is "LINE CLASS SIZE".
func (d *Decoder) snapshotSite(a *Allocation) error {
	begin := d.in
	key, err := d.in.text("a line, a class and a size")
	if err != nil {
		return err
	}
	if !a.parseKey(key) {
		return begin.fail(FaultValue, `a text of a line, a class and a size, such as "12 String 40"`, strconv.QuoteToASCII(string(key[:min(len(key), maxQuoted)])))
	}
	n, err := d.in.mapping("a map of a count and stacks")
	if err != nil {
		return err
	}
	for range n {
		key, err := d.in.key()
		if err != nil {
			return err
		}
		switch key {
		case keyCount:
			a.Count, err = d.in.uint("the number of objects")
		case keyStacks:
			a.Stacks, err = d.stackCounts()
		default:
			err = d.in.skip("a value")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// maxQuoted is how many bytes of a text an error quotes.
const maxQuoted = 64

// parseKey splits the key of an allocation at its first and its last space: names of
// classes may have some.
func (a *Allocation) parseKey(key []byte) bool {
	first, last := bytes.IndexByte(key, ' '), bytes.LastIndexByte(key, ' ')
	if first < 0 || first == last {
		return false
	}
	var okLine, okSize bool
	a.Line, okLine = decimal(key[:first])
	a.Size, okSize = decimal(key[last+1:])
	if a.Class = key[first+1 : last]; string(a.Class) == hiddenClass {
		a.Class = nil
	}
	return okLine && okSize
}

// decimal reads digits without allocating.
func decimal(digits []byte) (n uint64, ok bool) {
	const maxDigits = 18
	if len(digits) == 0 || len(digits) > maxDigits {
		return 0, false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + uint64(c-'0')
	}
	return n, true
}

// stackCounts reads past IDs of stacks and counts, and remembers where they are.
func (d *Decoder) stackCounts() (s StackCounts, err error) {
	if d.in.isNil() {
		return s, nil
	}
	if s.n, err = d.in.mapping("a map of stacks and counts"); err != nil {
		return StackCounts{}, err
	}
	begin := d.in.at
	if err := d.in.uints(2*uint64(s.n), "the ID of a stack and the number of objects"); err != nil {
		return StackCounts{}, err
	}
	s.packed = d.in.all[begin:d.in.at]
	return s, nil
}
