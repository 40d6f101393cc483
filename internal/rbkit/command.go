// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkit

import "fmt"

// Command is what a server can be asked: these bytes, in one frame. An empty frame must
// never be sent: the server answers nobody any more after it.
type Command string

// The commands.
const (
	Handshake           Command = "handshake" // is answered by a HandshakeReply
	StartMemoryProfile  Command = "start_memory_profile"
	StopMemoryProfile   Command = "stop_memory_profile"
	TriggerGC           Command = "trigger_gc"
	ObjectSpaceSnapshot Command = "objectspace_snapshot"
	UseCPUTime          Command = "use_cpu_time"  // from the next start of CPU profiling on
	UseWallTime         Command = "use_wall_time" // likewise
	StartCPUProfiling   Command = "start_cpu_profiling"
	StopCPUProfiling    Command = "stop_cpu_profiling"
)

// ok is the answer to every command but Handshake, to those that don't exist, too: what a
// command has changed is seen by a handshake.
const ok = "ok"

// CheckOK says whether that is the answer to a command. The error is a *ProtocolError.
func CheckOK(reply []byte) error {
	if string(reply) != ok {
		return &ProtocolError{Problem: WrongValue, Expected: fmt.Sprintf("%q", ok), Got: fmt.Sprintf("%.32q", reply)}
	}
	return nil
}

// OK is the answer to a command.
func OK() []byte { return []byte(ok) }
