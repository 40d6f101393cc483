// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"fmt"
	"sync"
	"time"

	"github.com/callbraid/callbraid/internal/greys"
)

// decoder reads the data of replies to one command.
type decoder struct {
	scanner
	names        names
	times        localTimes
	maxTolerated int
	// tolerating is held while data are read tolerantly, which takes memory.
	tolerating *sync.Mutex
	// affected is what was said last; told, how many answers were given.
	affected greys.Affected
	said     bool
	told     int
	// The rest is what the data at hand say.
	hasAffected, hasItems bool
	now                   greys.Affected
	version               greys.Version
	sessions              greys.Sessions
	statistics            greys.Statistics
	stack                 greys.CallStack
	detail                greys.RecordDetail
	records               []greys.Record
	// methods are those of one class.
	methods []greys.Method
	// each takes answers. Classes and methods are given while they are read where giving.
	each   func(greys.Reply)
	giving bool
}

func newDecoder(place *time.Location, maxTolerated int, tolerating *sync.Mutex) *decoder {
	return &decoder{times: localTimes{place: place}, maxTolerated: maxTolerated, tolerating: tolerating}
}

// decode reads data, and gives each answer that they hold; tolerated says that they are no
// JSON. The error is a *ProtocolError, and nothing was given then.
func (d *decoder) decode(command greys.Command, data []byte, each func(greys.Reply)) (tolerated bool, err error) {
	if len(data) == 0 {
		return false, nil
	}
	err = d.read(command, data)
	if err != nil && len(data) <= d.maxTolerated && !isJSON(data) {
		if strict := d.tolerate(data); strict != nil {
			tolerated, data = true, strict
			if err = d.read(command, data); err != nil {
				err = fmt.Errorf("the data, read as YAML: %w", err)
			}
		}
	}
	if err != nil {
		return false, err
	}
	d.each = each
	d.tell(command, data)
	d.each = nil
	return tolerated, nil
}

func (d *decoder) tolerate(data []byte) []byte {
	d.tolerating.Lock()
	defer d.tolerating.Unlock()
	return tolerate(data)
}

func (d *decoder) read(command greys.Command, data []byte) error {
	d.hasAffected, d.hasItems, d.now = false, false, greys.Affected{}
	d.open(data)
	switch command.(type) {
	case greys.VersionCommand:
		d.readVersion()
	case greys.SessionsCommand:
		d.readSessions()
	case greys.MonitorCommand:
		d.readStatistics()
	case greys.StackCommand:
		d.readStack()
	case greys.RecordsCommand:
		d.readRecords()
	case greys.RecordDetailCommand:
		d.readRecordDetail()
	case greys.ClassesCommand:
		d.readClasses()
	case greys.MethodsCommand:
		d.readMethods()
	case greys.ResetCommand:
		d.members(func(key []byte) { d.readOther(key) })
	}
	return d.close()
}

// tell gives what was read. Classes and methods, of which there may be very many, are
// read a second time for it, since they would take ten times as much memory as the data.
func (d *decoder) tell(command greys.Command, data []byte) {
	if d.hasAffected && (!d.said || d.now != d.affected) {
		d.said, d.affected = true, d.now
		d.give(&d.now)
	}
	if !d.hasItems {
		return
	}
	switch command.(type) {
	case greys.VersionCommand:
		d.give(&d.version)
	case greys.SessionsCommand:
		d.give(&d.sessions)
	case greys.MonitorCommand:
		d.give(&d.statistics)
	case greys.StackCommand:
		d.give(&d.stack)
	case greys.RecordsCommand:
		for i := range d.records {
			d.give(&d.records[i])
		}
	case greys.RecordDetailCommand:
		d.give(&d.detail)
	case greys.ClassesCommand, greys.MethodsCommand:
		d.giving = true
		_ = d.read(command, data) // it was read before
		d.giving = false
	}
}

// give gives one answer.
func (d *decoder) give(reply greys.Reply) {
	d.told++
	d.each(reply)
}

// finish says that a command that gives one answer, and has ended, gave it.
func (d *decoder) finish(command greys.Command) error {
	switch command.(type) {
	case greys.VersionCommand, greys.SessionsCommand, greys.RecordDetailCommand, greys.ResetCommand:
		if d.told == 0 {
			return &ProtocolError{Expected: "an answer", Got: "an end without one"}
		}
	}
	return nil
}

// readOther reads a member that any reply may have, or that is unknown.
func (d *decoder) readOther(key []byte) {
	if string(key) != "affect" {
		d.skip()
		return
	}
	d.hasAffected = d.peek() == '{'
	d.members(func(key []byte) {
		switch string(key) {
		case "class-count":
			d.now.Classes = d.count()
		case "method-count":
			d.now.Methods = d.count()
		case "row-count":
			d.now.Rows = d.count()
		default:
			d.skip()
		}
	})
}

// name reads a text, or a number or truth as one, that is likely to come again.
func (d *decoder) name() string {
	text, _ := d.scalar()
	return d.names.of(text)
}

// require fails where something was not said in the object that begins at a place.
func (d *decoder) require(said bool, at int, what string) {
	if !said && d.err == nil {
		d.fail(at, what, "an object without it")
	}
}

// maxMembers is how many of a kind a class file, and so a class, can have.
const maxMembers = 1<<16 - 1

// room fails where there are more of a kind than there can be.
func (d *decoder) room(have, most int) {
	if have >= most {
		d.fail(d.at, fmt.Sprintf("at most %d of these", most), "another one")
	}
}

// list reads an array of texts.
func (d *decoder) list() (list []string) {
	d.elements(func() {
		d.room(len(list), maxMembers)
		list = append(list, d.name())
	})
	return list
}

// keptItems is how many items what they are read into may stay large enough for.
const keptItems = 4096

// reused is a slice to read items into.
func reused[T any](items []T) []T {
	if cap(items) > keptItems {
		return nil
	}
	clear(items) // what they point to is not kept
	return items[:0]
}
