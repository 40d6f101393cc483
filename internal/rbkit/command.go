// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkit

import "fmt"

// Command is a command to a server: these bytes, in one frame. A client must never send an empty
// frame, because the server then stops answering all clients.
type Command string

// The commands.
const (
	Handshake           Command = "handshake" // is answered by a HandshakeReply
	StartMemoryProfile  Command = "start_memory_profile"
	StopMemoryProfile   Command = "stop_memory_profile"
	TriggerGC           Command = "trigger_gc"
	ObjectSpaceSnapshot Command = "objectspace_snapshot"
	UseCPUTime          Command = "use_cpu_time"  // from the next start of CPU profiling
	UseWallTime         Command = "use_wall_time" // from the next start of CPU profiling
	StartCPUProfiling   Command = "start_cpu_profiling"
	StopCPUProfiling    Command = "stop_cpu_profiling"
)

// ok is the answer to every command except Handshake, also to an unknown command. The next
// handshake shows the effect of a command.
const ok = "ok"

// CheckOK returns a *ProtocolError if the reply to a command is not ok.
func CheckOK(reply []byte) error {
	if string(reply) != ok {
		return &ProtocolError{Problem: WrongValue, Expected: fmt.Sprintf("%q", ok), Got: fmt.Sprintf("%.32q", reply)}
	}
	return nil
}

// OK is the answer to a command.
func OK() []byte { return []byte(ok) }
