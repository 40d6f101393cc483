// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package rbkittest makes events for tests.
package rbkittest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/rbkit"
)

// LastEvent writes a message, and returns its last event as a reader returns it.
func LastEvent(t testing.TB, dialect rbkit.Dialect, write func(*rbkit.Collection) error) rbkit.Event {
	t.Helper()
	c := rbkit.NewCollection(dialect)
	require.NoError(t, write(c))
	var r rbkit.Reader
	require.NoError(t, r.Open(dialect, c.AppendTo(nil, 1, 0)))
	for r.Next() {
	}
	require.NoError(t, r.Err())
	return *r.Event()
}
