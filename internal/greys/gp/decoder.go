// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"fmt"
	"sync"
	"time"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// decoder reads the data of replies to one command.
type decoder struct {
	scanner
	names        javamethods.Names
	times        localTimes
	maxTolerated int
	// tolerating guards reading data tolerantly, which takes much memory.
	tolerating *sync.Mutex
	// affected is the last delivered value, if affectedDelivered; delivered is the number of delivered answers.
	affected          javamethods.Affected
	affectedDelivered bool
	delivered         int
	// The other fields hold the data of the current reply.
	hasAffected, hasItems bool
	now                   javamethods.Affected
	version               javamethods.Version
	sessions              javamethods.Sessions
	statistics            javamethods.Statistics
	stack                 javamethods.CallStack
	detail                javamethods.RecordDetail
	records               []javamethods.Record
	// methods are the methods of one class.
	methods []javamethods.Method
	// each receives answers. If delivering is set, classes and methods are delivered while they are read.
	each       func(javamethods.Reply)
	delivering bool
}

func newDecoder(place *time.Location, maxTolerated int, tolerating *sync.Mutex) *decoder {
	return &decoder{times: localTimes{place: place}, maxTolerated: maxTolerated, tolerating: tolerating}
}

// decode reads data and delivers each answer in them. Tolerated means that the data were not JSON. After an error,
// which is a *ProtocolError, no answer was delivered.
func (d *decoder) decode(command javamethods.Command, data []byte, each func(javamethods.Reply)) (tolerated bool, err error) {
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
	d.deliverAll(command, data)
	d.each = nil
	return tolerated, nil
}

func (d *decoder) tolerate(data []byte) []byte {
	d.tolerating.Lock()
	defer d.tolerating.Unlock()
	return tolerate(data)
}

func (d *decoder) read(command javamethods.Command, data []byte) error {
	d.hasAffected, d.hasItems, d.now = false, false, javamethods.Affected{}
	d.open(data)
	switch command.(type) {
	case javamethods.VersionCommand:
		d.readVersion()
	case javamethods.SessionsCommand:
		d.readSessions()
	case javamethods.MonitorCommand:
		d.readStatistics()
	case javamethods.StackCommand:
		d.readStack()
	case javamethods.RecordsCommand:
		d.readRecords()
	case javamethods.RecordDetailCommand:
		d.readRecordDetail()
	case javamethods.ClassesCommand:
		d.readClasses()
	case javamethods.MethodsCommand:
		d.readMethods()
	case javamethods.ResetCommand:
		d.members(func(key []byte) { d.readOther(key) })
	}
	return d.close()
}

// deliverAll delivers the answers. It reads classes and methods a second time: there may be very many, and all together
// would take ten times as much memory as the data.
func (d *decoder) deliverAll(command javamethods.Command, data []byte) {
	if d.hasAffected && (!d.affectedDelivered || d.now != d.affected) {
		d.affectedDelivered, d.affected = true, d.now
		d.deliver(&d.now)
	}
	if !d.hasItems {
		return
	}
	switch command.(type) {
	case javamethods.VersionCommand:
		d.deliver(&d.version)
	case javamethods.SessionsCommand:
		d.deliver(&d.sessions)
	case javamethods.MonitorCommand:
		d.deliver(&d.statistics)
	case javamethods.StackCommand:
		d.deliver(&d.stack)
	case javamethods.RecordsCommand:
		for i := range d.records {
			d.deliver(&d.records[i])
		}
	case javamethods.RecordDetailCommand:
		d.deliver(&d.detail)
	case javamethods.ClassesCommand, javamethods.MethodsCommand:
		d.delivering = true
		_ = d.read(command, data) // the first reading found no error
		d.delivering = false
	}
}

// deliver passes one answer to the caller.
func (d *decoder) deliver(reply javamethods.Reply) {
	d.delivered++
	d.each(reply)
}

// finish checks that a command of exactly one answer has delivered one before its end.
func (d *decoder) finish(command javamethods.Command) error {
	switch command.(type) {
	case javamethods.VersionCommand, javamethods.SessionsCommand, javamethods.RecordDetailCommand, javamethods.ResetCommand:
		if d.delivered == 0 {
			return &ProtocolError{Expected: "an answer", Got: "an end without one"}
		}
	}
	return nil
}

// readItems reads a reply whose items are in an array.
func (d *decoder) readItems(read func()) {
	d.members(func(key []byte) {
		if string(key) != "items" {
			d.readOther(key)
			return
		}
		d.hasItems = d.peek() == '['
		d.elements(read)
	})
}

// readOther reads a member that is common to all replies, or unknown.
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

// name reads a scalar as a string and interns it, for values that often repeat.
func (d *decoder) name() string {
	text, _ := d.scalar()
	return d.names.Intern(text)
}

// require fails if the object at an offset lacks a member.
func (d *decoder) require(present bool, at int, expected string) {
	if !present && d.err == nil {
		d.fail(at, expected, "an object without it")
	}
}

// maxMembers is the maximum number of members of one kind in a class file, and so in a class.
const maxMembers = 1<<16 - 1

// limit fails if there are already most elements.
func (d *decoder) limit(have, most int) {
	if have >= most {
		d.fail(d.at, fmt.Sprintf("at most %d elements", most), "one more")
	}
}

// list reads an array of scalars as strings.
func (d *decoder) list() (list []string) {
	d.elements(func() {
		d.limit(len(list), maxMembers)
		list = append(list, d.name())
	})
	return list
}

// keptItems is the largest capacity of a slice that is reused for the next reply.
const keptItems = 4096

// reused returns an empty slice to read items into.
func reused[T any](items []T) []T {
	if cap(items) > keptItems {
		return nil
	}
	clear(items) // releases the memory behind their pointers
	return items[:0]
}
