// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive

import "fmt"

// Command is a command of a viewer.
type Command uint32

// The commands, with their numbers in a request's header.
const (
	CommandConnect       Command = 1
	CommandListSessions  Command = 2
	CommandAttachSession Command = 3
	CommandGetNextIndex  Command = 4
	CommandGetPacket     Command = 5
	CommandGetMetadata   Command = 6
	CommandGetNewStreams Command = 7
	CommandCreateSession Command = 8 // creates the viewer's own session, to which it attaches tracing sessions
	CommandDetachSession Command = 9
)

// commands has the name of each command and the size of its payload in bytes.
var commands = [...]struct {
	name    string
	payload int
}{
	CommandConnect:       {"connect", 20},
	CommandListSessions:  {"list sessions", 0},
	CommandAttachSession: {"attach session", 20},
	CommandGetNextIndex:  {"get next index", 8},
	CommandGetPacket:     {"get packet", 20},
	CommandGetMetadata:   {"get metadata", 8},
	CommandGetNewStreams: {"get new streams", 8},
	CommandCreateSession: {"create session", 0},
	CommandDetachSession: {"detach session", 8},
}

// Known reports whether the protocol has this command.
func (c Command) Known() bool { return c >= CommandConnect && uint64(c) < uint64(len(commands)) }

func (c Command) String() string {
	if !c.Known() {
		return fmt.Sprintf("command %d", uint32(c))
	}
	return commands[c].name
}

// payload returns the size in bytes of the payload of a known command.
func (c Command) payload() int { return commands[c].payload }
