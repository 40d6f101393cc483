// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package attack plays hostile peers against the built distribution, which runs with the shipped
// configurations. It measures the peak memory, the memory after the attack, the time until the
// collector serves others again, its log, and the delivered calls of honest agents. Each
// measurement has a bound. `make attack` runs all attacks; `make test` runs a short form.
//
// Each kind of hostile peer is an Attacker in its own file. scenarios.go lists the attackers of
// each configuration, and bounds.go has the allowed costs. Package soak uses the attackers too.
//
// Every attack stays on loopback, is bounded in number and time, and ends by itself.
package attack
