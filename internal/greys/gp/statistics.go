// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"fmt"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// readStatistics reads the reply to monitor ("监控方法调用").
func (d *decoder) readStatistics() {
	d.statistics.Methods = reused(d.statistics.Methods)
	d.readItems(func() {
		d.statistics.Methods = append(d.statistics.Methods, javamethods.MethodStatistics{Calls: -1, Succeeded: -1, Failed: -1})
		d.readMethodStatistics(&d.statistics.Methods[len(d.statistics.Methods)-1])
	})
}

// readMethodStatistics reads the statistics of one method. It skips the failure rate, which follows from the counts.
func (d *decoder) readMethodStatistics(m *javamethods.MethodStatistics) {
	at := d.at
	d.members(func(key []byte) {
		switch string(key) {
		case "timestamp":
			m.Time = d.epoch()
		case "class":
			m.Class = d.name()
		case "method":
			m.Method = d.name()
		case "total":
			m.Calls = d.count()
		case "success":
			m.Succeeded = d.count()
		case "fail":
			m.Failed = d.count()
		case "rt":
			m.Mean, m.HasMean = d.millis()
		default:
			d.skip()
		}
	})
	d.require(m.Class != "" && m.Method != "", at, "class and method")
	d.require(!m.Time.IsZero(), at, "timestamp")
	d.require(m.Calls >= 0 && m.Succeeded >= 0 && m.Failed >= 0, at, "total, success and fail")
	if m.Failed > m.Calls-m.Succeeded && d.err == nil {
		d.fail(at, "success and fail that are at most total together", fmt.Sprintf("%d and %d of %d", m.Succeeded, m.Failed, m.Calls))
	}
	if m.Calls == 0 {
		m.Mean, m.HasMean = 0, false // the mean of no calls has no meaning
	}
}
