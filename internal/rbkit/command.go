// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkit

// Command is what a server is told: exactly these bytes, in a message of one part.
//
// A server answers HandshakeCommand with what DecodeHandshake reads, and everything else
// with Acknowledged, a command that it doesn't have, too: a handshake tells what came of
// it. A message that is empty blocks its socket for good.
type Command string

// The commands of a server.
const (
	HandshakeCommand    Command = "handshake"
	StartMemoryProfile  Command = "start_memory_profile"
	StopMemoryProfile   Command = "stop_memory_profile"
	TriggerGC           Command = "trigger_gc"
	ObjectSpaceSnapshot Command = "objectspace_snapshot"
	UseCPUTime          Command = "use_cpu_time"
	UseWallTime         Command = "use_wall_time"
	StartCPUProfiling   Command = "start_cpu_profiling"
	StopCPUProfiling    Command = "stop_cpu_profiling"
	// Acknowledged is the answer to all commands but HandshakeCommand.
	Acknowledged = "ok"
)
