// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"fmt"
	"strconv"
	"time"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// Writer writes the data of replies.
type Writer struct {
	Style Style
	// Location is the time zone of the server; nil means UTC.
	Location *time.Location
}

// AppendMonitor adds the data of a reply to monitor: the counts of matched methods and the statistics of a cycle. A nil
// pointer omits its part.
func (w Writer) AppendMonitor(to []byte, affected *javamethods.Affected, cycle *javamethods.Statistics) []byte {
	o := object{to: to, style: w.Style}
	o.within("{}", func() {
		if affected != nil {
			o.key("affect")
			o.within("{}", func() {
				o.number("class-count", affected.Classes)
				o.number("method-count", affected.Methods)
			})
		}
		if cycle != nil {
			o.array("items", len(cycle.Methods), func(i int) { o.statistics(&cycle.Methods[i]) })
		}
	})
	return o.to
}

// AppendReset adds the data of the reply to reset.
func (w Writer) AppendReset(to []byte, rows int64) []byte {
	o := object{to: to, style: w.Style}
	o.within("{}", func() {
		o.key("affect")
		o.within("{}", func() { o.number("row-count", rows) })
	})
	return o.to
}

func (o *object) statistics(m *javamethods.MethodStatistics) {
	o.within("{}", func() {
		o.number("timestamp", m.Time.UnixMilli())
		o.text("class", m.Class)
		o.text("method", m.Method)
		o.number("total", m.Calls)
		o.number("success", m.Succeeded)
		o.number("fail", m.Failed)
		if m.HasMean {
			o.typed("rt", millis(int64(m.Mean)))
		}
		if m.Calls > 0 {
			o.typed("fail-rate", strconv.FormatFloat(float64(m.Failed)/float64(m.Calls), 'g', 4, 64))
		}
	})
}

// Append adds the data of a reply that consists of one answer: a Version, Sessions, a CallStack, or a RecordDetail.
func (w Writer) Append(to []byte, reply javamethods.Reply) ([]byte, error) {
	o := object{to: to, style: w.Style}
	switch r := reply.(type) {
	case *javamethods.Version:
		o.within("{}", func() { o.text("version", r.Text) })
	case *javamethods.Sessions:
		o.within("{}", func() {
			o.number("pid", r.ProcessID)
			o.array("items", len(r.Sessions), func(i int) { o.session(&r.Sessions[i]) })
		})
	case *javamethods.CallStack:
		o.within("{}", func() { o.stack(r) })
	case *javamethods.RecordDetail:
		o.within("{}", func() { o.detail(r, w.Location) })
	default:
		return to, fmt.Errorf("GP has no reply for %T", reply)
	}
	return o.to, nil
}

func (o *object) session(s *javamethods.Session) {
	o.within("{}", func() {
		o.number("session-id", s.ID)
		o.typed("duration", millis(int64(s.Duration)))
		o.text("charset", s.Charset)
		o.text("client-address", s.From)
		o.text("server-address", s.To)
	})
}

func (o *object) stack(s *javamethods.CallStack) {
	o.text("thread-name", s.Thread.Name)
	o.text("thread-id", fmt.Sprintf("%#x", s.Thread.ID))
	o.boolean("is-daemon", s.Thread.Daemon)
	o.number("priority", int64(s.Thread.Priority))
	o.array("items", len(s.Frames), func(i int) {
		f := &s.Frames[i]
		o.within("{}", func() {
			o.text("classname", f.Class)
			o.text("method-name", f.Method)
			if f.File != "" {
				o.text("filename", f.File)
			}
			o.number("line-number", int64(f.Line))
		})
	})
}
