// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package calltree folds spans, and stacks of profiles, into call trees: for each
// path of calls how many there were, how many failed, and what time they took. It
// knows no collector and no format that trees are shown in.
//
// # The way of a span
//
// A [Store] has a service for each name (service.go), and that a tree of its calls and one
// for each kind of its profiles (tree.go). A span is folded in the steps above Store.fold
// (fold.go). What is known of single spans is in seen: those that came and are remembered,
// and those that have not come and are waited for (seen.go). Where there is too little room
// shrink.go makes some, and compact.go gives memory back. Spans that came last are kept as
// they came (keptspans.go), and told trace by trace (traces.go).
//
// Whoever reads copies the tree, and makes a [Snapshot] of the copy (snapshot.go, tell.go). A
// window has values of its own at the nodes of the tree (window.go, collect.go).
//
// # Why it is done so
//
// Spans come in any order: tracers tell of a call when it ends, so what it called comes
// first; queues and retries mix that up. Keeping spans until their traces are whole would
// take memory for each span, and traces of programs that sit in main for hours never are.
//
//   - What waits for a caller is a fragment, in the tree of its service but not below its
//     top: a fragment takes memory for its paths, not for its spans. When the caller comes
//     it is hung below the caller's own, and merged with what is there. Merging walks what
//     both have, and each step but those that move a child ends with a node less; a span
//     makes two nodes at the most; so merging is paid for by spans that came, however
//     often their paths meet on the way up.
//   - A call that came before what it called is remembered with its node. As nodes are
//     merged that one may be gone: it leads to the one that it became until nobody
//     remembers it, and the way there is halved whenever it is gone.
//   - The order must not matter, for own times either: a call's own time counts as far as
//     it is above 0. So what it still has is remembered too, and what comes late takes away
//     only that.
//   - A reset takes values away and leaves nodes and what is remembered, and a window counts
//     beside the tree. Were they begun with an empty tree, every call under way would come
//     back as one whose callees are unknown: without its place, and with all of its time as
//     its own.
//   - Paths are folded by what part of their tree they are, not by nanoseconds: else a
//     service that works little, or a tree that counts samples, would be folded before all
//     others.
//   - Where names take too much only the tree that has most of them is made smaller, and its
//     kept spans go first, since they hold names on: or a service with SQL in its names
//     would have the trees of all others folded.
//   - Nodes and functions are used again by their tree only. So a tree of which little is
//     used is made anew (compact.go), when nobody but the store holds numbers of its nodes.
//   - What waits goes after what is remembered when spans have to be forgotten: most callees
//     come before their callers, so what is remembered is seldom needed, and what waits
//     always is.
//   - Spans that come together are folded from the last to the first where callees come
//     first: then only the topmost of them begin fragments, and nothing is merged below.
//   - What a span costs is mostly waiting for memory and branches that are guessed wrong. So
//     the index is made of lines of the processor's cache that are looked through without
//     branches (index.go), and many of its lines are read before they are needed.
//   - There is one lock. Callers and callees can be in two services, and in two traces, so
//     whatever trees were divided by would need the other's lock. Reading spans, which is
//     as much work, is done outside.
//   - Everything that there are many of is in slices without pointers, found by index: the
//     garbage collector has nothing to look for in them, and a million of them is no
//     million allocations.
package calltree
