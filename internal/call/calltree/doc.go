// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package calltree folds spans, call paths, and stacks of profiles, into call trees. A tree has a
// node for each path of calls, with the number of calls, errors and the time. The package knows no
// collector and no format for trees.
//
// # The way of a span
//
// store.go has the interface, the lock, and the six steps that fold a span. Each file uses
// only files below it:
//
//   - services.go has the service of each name, and decides which services get a place
//     (candidates.go, by their evidence.go). A service (service.go) has a tree of its calls,
//     one for each kind of its profiles, its threads (thread.go), and its rate (rate.go).
//   - room.go frees memory at the bounds, and folds small paths (smallpaths.go).
//   - seen.go has the single spans: those that arrived and are remembered, and callers for
//     which callees wait. spantable.go finds them by ID and by age.
//   - keptspans.go has the latest spans as they arrived, for traces (traces.go).
//   - forest.go has the trees of all services by number, and tree.go a tree. Its nodes have
//     functions (function.go) and values (values.go), also those of earlier periods (period.go).
//
// span.go and sample.go have what arrives, settings.go, counters.go and errors.go what the
// caller sets and gets. sparse.go decides when memory is given back.
//
// callpaths.go folds the sums of call paths, which their sender counted. They need none of the
// steps for single spans, because the sender knows each caller.
//
// A reader copies the tree, and makes a [Snapshot] of the copy (snapshot.go, nodes.go), with
// its nodes in the order of preorder.go. A window has values of its own at the nodes of the tree
// (window.go). The growth of a tree in a period, and a tree that a snapshot restores, are in
// growth.go. sum.go adds up snapshots.
//
// # Reasons
//
// Spans arrive in any order. Tracers send a call when it ends, so its callees arrive first.
// Queues and retries mix the order further. Keeping spans until their traces are complete
// would take memory for each span, and the trace of a program that stays in main never is.
//
//   - Callees that wait for a caller form a fragment in the tree of their service, beside its
//     top. A fragment takes memory for its paths, not for its spans. When the caller arrives,
//     the fragment is merged with the paths below the caller's node. Merging walks the paths
//     that both have. Each step removes a node, except those that move a child. A span makes
//     at most two nodes, so the spans that arrived pay for all merging.
//   - A call that arrives before its callees is remembered with its node. A node that was
//     merged leads to the node that it became, until nothing refers to it. Each use halves the
//     way there.
//   - The order must not change own times. So the rest of a call's own time is remembered, and
//     a late callee reduces only that rest. Own times are never below 0.
//   - A reset removes values, and leaves nodes and remembered calls. A window counts beside the
//     tree. With an empty tree instead, every call under way would lose its callees.
//   - The size of a path is its part of its tree, not nanoseconds. Otherwise a service that
//     works little, or a tree of samples, would be folded first.
//   - If names take too much memory, only the tree with the most is made smaller, and its kept
//     spans go first because they hold names. Otherwise a service with SQL in its names would
//     cost all others their trees.
//   - Only their own tree uses nodes and functions again. So a sparse tree is compacted while
//     only the store holds numbers of its nodes.
//   - At the bound of remembered spans, waiting callers go last. Most callees arrive before
//     their callers, so a remembered call is seldom needed, and a waiting caller always is.
//   - If callees come first, a batch is folded from its last span. Then only the topmost calls
//     begin fragments, and nothing is merged below them.
//   - The cost of a span is mostly waiting for memory and mispredicted branches. So the index
//     consists of cache lines and is searched without branches (index.go), and many of its
//     lines are read before they are needed.
//   - There is one lock, because callers and callees can be in two services and in two traces.
//     Reading spans is as much work, and happens outside.
//   - Everything numerous is in slices without pointers, found by index. The garbage collector
//     does not search them, and a million entries are not a million allocations.
package calltree
