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
// extension and its server. directory.go knows the agents; orders.go has them do something,
// one after the other, and tells everybody what came of it. site.go is what is served, and
// what all requests have in common; api.go is the API, problems.go its errors, values.go
// how it says agents; page.go is the page. telemetry.go counts.
//
// Requests are served by their own goroutines, commands included: so whatever runs ends
// with its request, by command_timeout at the latest, and with the server. Nobody writes
// to a client while a lock is held.
package agentcontrolextension
