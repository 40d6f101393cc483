// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package servermemory

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/componentkit/budget"
)

// The memory of a server exists until it is freed, also when the account accepts no more bytes.
func TestMemoryBeyondTheBudgetIsCountedOnce(t *testing.T) {
	const mib = 1 << 20
	of := budget.New(8 * mib)
	m := New(of.Group("greys"), 100*mib)
	defer m.Close()
	other := of.Group("rbkit").Open(budget.Settings{Leave: func(*budget.Error) {}})
	defer other.Close()
	require.NoError(t, m.Hold(5*mib))
	_ = other.Reserve(4 * mib) // the budget is full, so it asks the larger account to leave
	require.Error(t, m.account.Err())
	assert.Error(t, m.Hold(6*mib))
	assert.EqualValues(t, 6*mib, m.account.Used())
	assert.Error(t, m.Hold(7*mib))
	assert.EqualValues(t, 7*mib, m.account.Used())
	assert.Error(t, m.Hold(mib))
	assert.EqualValues(t, mib, m.account.Used())
}

func TestMemoryBeyondTheServersOwnLimitIsCountedOnce(t *testing.T) {
	const mib = 1 << 20
	m := New(budget.New(100*mib).Group("greys"), 2*mib)
	defer m.Close()
	assert.Error(t, m.Hold(3*mib))
	assert.EqualValues(t, 3*mib, m.account.Used())
}
