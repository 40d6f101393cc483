// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontrol

import (
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
)

// EventName is that of the log records of orders.
const EventName = "agent_control.command"

// Attributes of the log records of orders.
const (
	AttributeAgent     = "agent_control.agent.id"
	AttributeCommand   = "agent_control.command.name"
	AttributeArguments = "agent_control.command.arguments"
	AttributeResult    = "agent_control.command.result"
	AttributeBy        = "agent_control.command.by"
	AttributeDuration  = "agent_control.command.duration"
)

// Record is an order of a client for an agent, with its result.
type Record struct {
	// Agent is the ID of the agent.
	Agent string
	Order Order
	// Written has the arguments as they were written.
	Written string
	// Err is an *Error; nil: it was done.
	Err error
	// Message is the agent's answer.
	Message string
	// Took is the time of the order, with the time that it waited for others.
	Took time.Duration
}

// Outcome is Done or a Reason.
func (r Record) Outcome() string {
	if r.Err == nil {
		return Done
	}
	return string(ReasonOf(r.Err))
}

// Body is the text of a log record.
func (r Record) Body() string {
	body := "Command " + r.Order.Command
	if r.Written != "" {
		body += " " + r.Written
	}
	if r.Err != nil {
		return body + ": " + r.Outcome() + ": " + r.Err.Error()
	}
	return body + ": " + r.Message
}

// Severity is that of a log record.
func (r Record) Severity() plog.SeverityNumber {
	if r.Err != nil {
		return plog.SeverityNumberWarn
	}
	return plog.SeverityNumberInfo
}

// Attribute is one of a log record's: a text.
type Attribute struct{ Key, Value string }

// Attributes are those of a log record.
func (r Record) Attributes() []Attribute {
	attributes := []Attribute{
		{AttributeAgent, r.Agent},
		{AttributeCommand, r.Order.Command},
		{AttributeResult, r.Outcome()},
		{AttributeBy, r.Order.By},
		{AttributeDuration, strconv.FormatFloat(r.Took.Seconds(), 'f', 3, 64)},
	}
	if r.Written != "" {
		attributes = append(attributes, Attribute{AttributeArguments, r.Written})
	}
	return attributes
}
