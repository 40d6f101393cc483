// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngagent

import "fmt"

// CommandType is what an agent is told to do.
type CommandType uint32

// The types, as they stand in a command's header.
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

// Known says that the protocol has this command.
func (t CommandType) Known() bool { return t >= CommandList && t <= CommandDisableContext }

func (t CommandType) String() string {
	if !t.Known() {
		return fmt.Sprintf("command %d", uint32(t))
	}
	return commandNames[t]
}

// Command is any command. The types of this file implement it as values.
type Command interface {
	Type() CommandType
	// appendPayload appends what follows the header. The agent is one that has the
	// command.
	appendPayload(b []byte, to Agent) []byte
}

// List asks for the names of all loggers that the agent can trace. In Java those are
// the loggers that have the agent's handler: none, until the application attaches it.
type List struct{}

// Enable has loggers traced, now and when they come. Whether there are any is not said.
type Enable struct {
	Logger Pattern
	Levels Levels
	Filter Filter
}

// Disable takes back one Enable with the same pattern. The agent answers UnknownName if
// there was none.
type Disable struct {
	Logger Pattern
}

// RegistrationDone lets the application go on, which waits for it in the constructor of
// its first handler. There is no reply.
type RegistrationDone struct{}

// EnableContext has a value of the application recorded with each record.
type EnableContext struct {
	Context Context
}

// DisableContext takes back one EnableContext with the same context. The agent answers
// UnknownName if there was none.
type DisableContext struct {
	Context Context
}

func (List) Type() CommandType             { return CommandList }
func (Enable) Type() CommandType           { return CommandEnable }
func (Disable) Type() CommandType          { return CommandDisable }
func (RegistrationDone) Type() CommandType { return CommandRegistrationDone }
func (EnableContext) Type() CommandType    { return CommandEnableContext }
func (DisableContext) Type() CommandType   { return CommandDisableContext }
