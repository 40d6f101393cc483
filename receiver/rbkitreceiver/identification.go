// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

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
	// size is the memory of the messages, about.
	size int
}

// heldMessage is a message with the time at which it arrived.
type heldMessage struct {
	data []byte
	at   time.Time
}

// bytesOfHeld is the memory of a message beside its bytes, about.
const bytesOfHeld = 64

// begin begins an identification.
func (m *identification) begin(anew bool) {
	*m = identification{open: true, number: m.number + 1, restarted: anew}
}

// end ends the identification, and returns the held messages.
func (m *identification) end() (kept []heldMessage) {
	kept = m.held
	*m = identification{number: m.number}
	return kept
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
