// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package agentcontrolextension shows the agents that the receivers of a collector have,
// and has them do what somebody wants, by an HTTP API and by a page.
//
// It knows neither tracers nor receivers: what it knows of an agent is what
// internal/agentcontrol has.
//
// config.go and factory.go are what an operator sees; extension.go is the life of the
// extension and its server, connections.go bounds the server's connections. directory.go
// knows the agents; orders.go has them do something, and tells everybody what came of it,
// turns.go one after the other, log.go in the Collector's log. site.go is what is served, and
// what all requests have in common; api.go is the API, list.go its list of all agents,
// problems.go its errors, values.go how it says agents; page.go is the page, answers.go the
// answers to its forms. telemetry.go counts.
//
// Requests are served by their own goroutines, commands included. An agent's Do ends by
// command_timeout, with whoever asked, and with the server; its Snapshot and Told have no
// deadline, and are as fast as its receiver. Nobody writes to a client while a lock is held.
package agentcontrolextension
