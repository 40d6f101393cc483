// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package attack plays hostile peers against the built distribution, which runs with the
// shipped configurations, and measures it: its peak memory, its memory after they left, the
// time until it serves others again, its log, and what honest agents beside them got through.
// Each measurement has a bound. `make attack` runs all of it; `make test` runs a short form.
//
// An Attacker is one kind of hostile peer, in a file of its own. scenarios.go lists what
// attacks which configuration, bounds.go what is allowed. Package soak uses the attackers, too.
//
// Everything is on loopback, is bounded in number and time, and ends by itself.
package attack
