// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngagent

import "fmt"

// CommandType is the type of a command.
type CommandType uint32

// The types, with their numbers in a command's header.
const (
	CommandList             CommandType = 1
	CommandEnable           CommandType = 2
	CommandDisable          CommandType = 3
	CommandRegistrationDone CommandType = 4
	CommandEnableContext    CommandType = 5
	CommandDisableContext   CommandType = 6
)

var commandNames = [...]string{
	CommandList: "list", CommandEnable: "enable", CommandDisable: "disable",
	CommandRegistrationDone: "registration done",
	CommandEnableContext:    "enable context", CommandDisableContext: "disable context",
}

// Known reports whether the protocol has this command.
func (t CommandType) Known() bool { return t >= CommandList && t <= CommandDisableContext }

func (t CommandType) String() string {
	if !t.Known() {
		return fmt.Sprintf("command %d", uint32(t))
	}
	return commandNames[t]
}

// Command is a command. The types of this file implement it as values.
type Command interface {
	Type() CommandType
	// appendPayload appends the payload. The agent must support the command.
	appendPayload(b []byte, to Agent) []byte
}

// List requests the names of all loggers that the agent can trace. In Java those are the loggers with the agent's
// handler: none before the application attaches it.
type List struct{}

// Enable enables tracing of loggers, including later ones. The reply does not contain whether there are any.
type Enable struct {
	Logger Pattern
	Levels Levels
	Filter Filter
}

// Disable reverts one Enable with the same pattern. The agent replies UnknownName if there was none.
type Disable struct {
	Logger Pattern
}

// RegistrationDone releases the application, which waits for it in the constructor of its first handler. There is no
// reply.
type RegistrationDone struct{}

// EnableContext adds a value of the application to each record.
type EnableContext struct {
	Context Context
}

// DisableContext reverts one EnableContext with the same context. The agent replies UnknownName if there was none.
type DisableContext struct {
	Context Context
}

func (List) Type() CommandType             { return CommandList }
func (Enable) Type() CommandType           { return CommandEnable }
func (Disable) Type() CommandType          { return CommandDisable }
func (RegistrationDone) Type() CommandType { return CommandRegistrationDone }
func (EnableContext) Type() CommandType    { return CommandEnableContext }
func (DisableContext) Type() CommandType   { return CommandDisableContext }
