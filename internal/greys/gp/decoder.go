// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"time"

	"github.com/callbraid/callbraid/internal/greys"
)

// decoder reads the data of replies to one command.
type decoder struct {
	scanner
	names        names
	times        localTimes
	maxTolerated int
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
	classes               []greys.Class
	methods               []greys.Method
}

func newDecoder(place *time.Location, maxTolerated int) *decoder {
	return &decoder{times: localTimes{place: place}, maxTolerated: maxTolerated}
}

// decode reads data, and gives each answer that they hold; tolerated says that they are no
// JSON. The error is a *ProtocolError, and nothing was given then.
func (d *decoder) decode(command greys.Command, data []byte, each func(greys.Reply)) (tolerated bool, err error) {
	if len(data) == 0 {
		return false, nil
	}
	err = d.read(command, data)
	if err != nil && !d.isJSON && len(data) <= d.maxTolerated {
		if strict := tolerate(data); strict != nil {
			tolerated, err = true, d.read(command, strict)
		}
	}
	if err != nil {
		return false, err
	}
	d.tell(command, each)
	return tolerated, nil
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

// tell gives each what was read.
func (d *decoder) tell(command greys.Command, each func(greys.Reply)) {
	give := func(reply greys.Reply) {
		d.told++
		each(reply)
	}
	if d.hasAffected && (!d.said || d.now != d.affected) {
		d.said, d.affected = true, d.now
		give(&d.now)
	}
	if !d.hasItems {
		return
	}
	switch command.(type) {
	case greys.VersionCommand:
		give(&d.version)
	case greys.SessionsCommand:
		give(&d.sessions)
	case greys.MonitorCommand:
		give(&d.statistics)
	case greys.StackCommand:
		give(&d.stack)
	case greys.RecordsCommand:
		giveAll(d.records, func(r *greys.Record) { give(r) })
	case greys.RecordDetailCommand:
		give(&d.detail)
	case greys.ClassesCommand:
		giveAll(d.classes, func(c *greys.Class) { give(c) })
	case greys.MethodsCommand:
		giveAll(d.methods, func(m *greys.Method) { give(m) })
	}
}

func giveAll[T any](all []T, give func(*T)) {
	for i := range all {
		give(&all[i])
	}
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
		d.fail(at, true, what, "an object without it")
	}
}

// list reads an array of texts.
func (d *decoder) list() (list []string) {
	d.elements(func() { list = append(list, d.name()) })
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
