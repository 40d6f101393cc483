// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package agentcontrolextension shows the agents of a collector's receivers, and sends them
// commands of clients, by an HTTP API and by a page.
//
// It knows neither tracers nor receivers, but only agents of internal/agentcontrol.
//
// config.go and factory.go are for operators. extension.go is the life cycle of the extension and
// its server. directory.go has the agents. orders.go carries out orders and reports their results,
// turns.go lets an agent have one at a time, and log.go writes them to the Collector's log.
// routes.go has the routes and the checks before them, site.go the common part of all requests.
// api.go has the API, list.go its list of all agents, problems.go its errors, and values.go its
// values. page.go has the pages, templates.go their templates, status.go the part about the whole
// collector, and answers.go the kept answers to forms. telemetry.go counts.
//
// Requests, with their commands, are served by their own goroutines. An agent's Do ends with
// command_timeout, with the client's request, and with the server. Its Snapshot and SendRecord have no
// deadline, and are as fast as its receiver. No goroutine writes to a client while it holds a lock.
package agentcontrolextension
