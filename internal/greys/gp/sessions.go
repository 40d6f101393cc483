// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"math"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// readVersion reads the reply to the request for the version ("获取服务端版本").
func (d *decoder) readVersion() {
	d.members(func(key []byte) {
		if string(key) != "version" {
			d.readOther(key)
			return
		}
		d.version.Text = d.name()
		d.hasItems = d.version.Text != ""
	})
}

// readSessions reads the reply to the request for sessions ("会话状态").
func (d *decoder) readSessions() {
	d.sessions = javamethods.Sessions{Sessions: reused(d.sessions.Sessions)}
	at := d.at
	d.members(func(key []byte) {
		switch string(key) {
		case "pid":
			d.sessions.ProcessID = d.integer(0, math.MaxInt64)
		case "items":
			d.hasItems = d.peek() == '['
			d.elements(func() {
				d.sessions.Sessions = append(d.sessions.Sessions, javamethods.Session{})
				d.readSession(&d.sessions.Sessions[len(d.sessions.Sessions)-1])
			})
		default:
			d.readOther(key)
		}
	})
	d.require(!d.hasItems || d.sessions.ProcessID != 0, at, "pid")
}

func (d *decoder) readSession(s *javamethods.Session) {
	at, hasID := d.at, false
	d.members(func(key []byte) {
		switch string(key) {
		case "session-id":
			s.ID, hasID = d.integer(math.MinInt64, math.MaxInt64), true
		case "duration":
			s.Duration, _ = d.millis()
		case "charset":
			s.Charset = d.name()
		case "client-address":
			s.From = d.name()
		case "server-address":
			s.To = d.name()
		default:
			d.skip()
		}
	})
	d.require(hasID, at, "session-id")
}
