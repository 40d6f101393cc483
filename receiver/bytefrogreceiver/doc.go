// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package bytefrogreceiver is the HQ of Bytefrog agents. It accepts their connections, and sends three
// signals to the pipelines: method calls as batches of call events, markers and reports of agents as log
// records, and the state of agents as metrics.
//
// It knows neither the layout of messages (internal/bytefrog) nor that of batches
// (internal/call/callevent), and has no call stacks.
//
// # Files
//
// Operators see config.go, with validate.go and expression.go, and factory.go. settings.go makes the settings
// of sessions. receiver.go is the life cycle, with the parts of environment.go and the times of timing.go.
//
// accept.go accepts connections (connection.go). handshake.go reads the first message of each.
// A hello opens a session (sessions.go) with an ID of registry.go, and a data hello joins one.
// refusal.go and turnaway.go refuse connections and agents, such as those beyond limits.go. Connections of disconnected agents linger
// (linger.go). memory.go counts the memory of connections.
//
// logs.go and metrics.go map the reports and the state of a session to pdata, and resource.go has its
// resource. steering.go shows the agents in the extension agent_control.
//
// # Packages below
//
// session is the session with one agent: the conversation, and the way of its data to the pipeline. It uses
// stream, which names and packs call events, pace, which keeps data connections near to each other, and
// runmemory. telemetry has the receiver's own metrics.
package bytefrogreceiver
