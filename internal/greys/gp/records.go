// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"math"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// readRecords reads the reply to the request for recorded calls ("搜索调用记录").
func (d *decoder) readRecords() {
	d.records = reused(d.records)
	d.readItems(func() {
		at := d.at
		d.records = append(d.records, unread)
		r := &d.records[len(d.records)-1]
		d.members(func(key []byte) {
			if !d.readRecord(r, key) {
				d.skip()
			}
		})
		d.requireRecord(r, at)
	})
}

// readRecordDetail reads the reply to the request for one recorded call ("调用记录详情").
func (d *decoder) readRecordDetail() {
	d.detail = javamethods.RecordDetail{Record: unread}
	at, empty := d.at, true
	d.members(func(key []byte) {
		empty = false
		switch {
		case d.readRecord(&d.detail.Record, key):
		case string(key) == "parameters":
			d.elements(func() {
				d.limit(len(d.detail.Parameters), maxParameters)
				d.detail.Parameters = append(d.detail.Parameters, d.words())
			})
		case string(key) == "return":
			d.detail.Return = d.words()
		case string(key) == "exception":
			d.detail.Exception = d.words()
		default:
			d.readOther(key)
		}
	})
	if d.hasItems = !empty; d.hasItems {
		d.requireRecord(&d.detail.Record, at)
	}
}

// maxParameters is the maximum number of parameters of a Java method.
const maxParameters = 255

// unread is a record before reading.
var unread = javamethods.Record{Index: -1, Cost: -1}

// readRecord reads the member of a record and reports whether the key is known.
func (d *decoder) readRecord(r *javamethods.Record, key []byte) bool {
	switch string(key) {
	case "index":
		r.Index = d.integer(0, math.MaxInt64)
	case "timestamp":
		r.Time = d.times.next(&d.scanner)
	case "cost":
		r.Cost, _ = d.millis()
	case "is-return":
		r.Returned = d.boolean()
	case "is-exception":
		r.Threw = d.boolean()
	case "object":
		r.Object = d.words()
	case "classname":
		r.Class = d.name()
	case "method-name":
		r.Method = d.name()
	default:
		return false
	}
	return true
}

// requireRecord fails if a record lacks a required member.
func (d *decoder) requireRecord(r *javamethods.Record, at int) {
	d.require(r.Index >= 0 && r.Cost >= 0 && !r.Time.IsZero(), at, "index, timestamp and cost")
	d.require(r.Class != "" && r.Method != "", at, "classname and method-name")
}

// words reads a scalar as a string, for values that rarely repeat.
func (d *decoder) words() string {
	text, _ := d.scalar()
	return string(text)
}
