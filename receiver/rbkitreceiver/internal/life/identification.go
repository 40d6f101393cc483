// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package life

import (
	"bytes"
	"time"
)

// identification is the time in which the receiver asks the server for its identity. It
// holds the messages that arrive meanwhile, so that all of them get the same resource.
type identification struct {
	open bool
	// number tells identifications of the server apart.
	number int
	// restarted says that the process is another one than before.
	restarted bool
	held      []heldMessage
	// size is the approximate memory of the messages.
	size int
}

// heldMessage is a message with the time at which it arrived.
type heldMessage struct {
	data []byte
	at   time.Time
}

// bytesOfHeld is the approximate memory of a message without its bytes.
const bytesOfHeld = 64

// begin begins an identification. restarted says that the process is another one than before.
func (m *identification) begin(restarted bool) {
	*m = identification{open: true, number: m.number + 1, restarted: restarted}
}

// end ends the identification, and returns the held messages.
func (m *identification) end() (held []heldMessage) {
	held = m.held
	*m = identification{number: m.number}
	return held
}

// drop drops the held messages, and returns how many there were.
func (m *identification) drop() (dropped int) {
	dropped = len(m.held)
	m.held, m.size = nil, 0
	return dropped
}

// holdAll holds messages that an earlier identification held.
func (m *identification) holdAll(messages []heldMessage) {
	m.held = messages
	for i := range messages {
		m.size += len(messages[i].data) + bytesOfHeld
	}
}

// hold copies a message, if all messages stay within so many bytes. The first message
// always fits.
func (m *identification) hold(message []byte, at time.Time, most int) bool {
	size := len(message) + bytesOfHeld
	if len(m.held) > 0 && m.size+size > most {
		return false
	}
	m.held = append(m.held, heldMessage{bytes.Clone(message), at})
	m.size += size
	return true
}
