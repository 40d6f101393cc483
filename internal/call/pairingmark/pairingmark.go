// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package pairingmark lets a receiver of call events find out whether stack_pairing follows
// it. The receiver puts a Mark into the context of its hand-overs, and stack_pairing sets it. In the same way a
// stack_pairing finds out that another one in front of it has paired the calls.
//
// A component between them that queues data and returns immediately, such as the batch processor or an exporter's
// queue, sends the data without that context. The mark then stays unset.
package pairingmark

import (
	"context"
	"sync/atomic"
)

// Mark reports whether a hand-over has reached stack_pairing. Its zero value is unset.
type Mark struct{ set atomic.Bool }

type key struct{}

// With returns a context that carries the mark.
func With(ctx context.Context, m *Mark) context.Context { return context.WithValue(ctx, key{}, m) }

// Set sets the mark that the context carries, if it carries one.
func Set(ctx context.Context) {
	// Most hand-overs find it set: reading leaves the mark in the caches of all cores.
	if m, ok := ctx.Value(key{}).(*Mark); ok && !m.set.Load() {
		m.set.Store(true)
	}
}

// IsSet reports whether Set was called with a context that carries the mark.
func (m *Mark) IsSet() bool { return m.set.Load() }

type pairedKey struct{}

// Paired returns a context for spans that stack_pairing has made of calls.
func Paired(ctx context.Context) context.Context { return context.WithValue(ctx, pairedKey{}, true) }

// IsPaired reports whether the context is for spans that stack_pairing has made of calls.
func IsPaired(ctx context.Context) bool { return ctx.Value(pairedKey{}) != nil }
