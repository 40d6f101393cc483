// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package budget bounds the memory that the process holds for its peers: names, waiting events, open frames, queues,
// metadata, call trees.
//
// The process has one Budget. Each component has a Group in it. Each run, session or
// server of a component has an Account in the group; a component whose data belongs to
// no single peer has one account for all of it.
//
//	process ── Budget ──┬── Group bytefrog ──────┬── Account of run 1
//	                    │                        └── Account of run 2
//	                    └── Group stack_pairing ──── Account of all call streams
//
// While there is room, accounts do not disturb each other. At the bound the budget asks one of them
// to release memory. It chooses max-min fair:
//
//  1. The group that holds most gives way. So a component that holds less than an equal
//     share never pays for another one.
//  2. In that group the account that holds most gives way. So a run that holds less than
//     an equal share never pays for a hostile one beside it.
//  3. The account that requests memory takes part in the choice, with the requested bytes
//     added. If the budget chooses it, it gets an error and has to leave.
//
// An account that has to leave gets no more memory. Its owner frees the memory first, and
// only then delivers the last data of its peer. Until the memory is free the process may
// hold an eighth more than the limit, and accounts below their equal share still get memory.
//
// The package counts the sizes that its callers report. It does not measure the heap: an owner
// reports the size of its data, with the share of maps and slices.
package budget
