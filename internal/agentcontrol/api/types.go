// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package api

import "time"

// AgentList is the answer to a request for all agents.
type AgentList struct {
	// AllowDisruptive reports whether the server allows commands that stop or pause programs.
	AllowDisruptive bool    `json:"allow_disruptive"`
	Agents          []Agent `json:"agents"`
}

// Agent is an agent in the list of all.
type Agent struct {
	ID       string     `json:"id"`
	Tracer   string     `json:"tracer"`
	Receiver string     `json:"receiver"`
	Service  string     `json:"service"`
	Address  string     `json:"address"`
	Process  *Process   `json:"process,omitempty"`
	State    string     `json:"state"`
	Since    *time.Time `json:"since,omitempty"`
	LastSeen *time.Time `json:"last_seen,omitempty"`
	// Commands are the names of the agent's commands.
	Commands []string `json:"commands"`
	// Unfit has the commands that have no effect now, or would be refused, with the reason.
	Unfit    map[string]string `json:"unfit,omitempty"`
	Counters []Counter         `json:"counters"`
}

// AgentDetail is one agent, with its commands.
type AgentDetail struct {
	Agent
	Descriptions []Command `json:"command_descriptions"`
}

// Process is a traced program.
type Process struct {
	PID  uint64 `json:"pid,omitempty"`
	Name string `json:"name,omitempty"`
}

// Counter is a number of an agent.
type Counter struct {
	Name  string `json:"name"`
	Unit  string `json:"unit"`
	Value int64  `json:"value"`
}

// Command is a command of an agent.
type Command struct {
	Name       string      `json:"name"`
	Summary    string      `json:"summary"`
	Disruptive bool        `json:"disruptive"`
	Parameters []Parameter `json:"parameters"`
}

// Parameter is a parameter of a command.
type Parameter struct {
	Name     string   `json:"name"`
	Summary  string   `json:"summary"`
	Kind     string   `json:"kind"`
	Required bool     `json:"required"`
	OneOf    []string `json:"one_of,omitempty"`
	Least    *int64   `json:"least,omitempty"`
	Most     *int64   `json:"most,omitempty"`
	// DisruptiveIf describes the values for which the command is disruptive; empty: none.
	DisruptiveIf string `json:"disruptive_if,omitempty"`
}

// Order is a request for a command. Arguments are texts, numbers and booleans.
type Order struct {
	Command   string         `json:"command"`
	Arguments map[string]any `json:"arguments,omitempty"`
}

// Answer is the answer of an agent.
type Answer struct {
	Agent   string   `json:"agent"`
	Command string   `json:"command"`
	Message string   `json:"message"`
	Details []Detail `json:"details"`
	Items   []string `json:"items"`
	// MoreItems is how many there are beside those.
	MoreItems int     `json:"more_items"`
	Seconds   float64 `json:"seconds"`
}

// Detail is a value with a name.
type Detail struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Problem is an answer that is an error, by RFC 9457.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	// Reason is a word for programs.
	Reason string `json:"reason"`
}

// These are the media types of answers.
const (
	TypeJSON    = "application/json"
	TypeProblem = "application/problem+json"
)
