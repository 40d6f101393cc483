// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package budgettest gives components a memory budget in tests.
package budgettest

import (
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/callbraid/callbraid/internal/budget"
)

// Host is a host whose components share a budget.
func Host(b *budget.Budget) component.Host {
	return host{Host: componenttest.NewNopHost(), budget: b}
}

type host struct {
	component.Host
	budget *budget.Budget
}

func (h host) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{component.MustNewID("memory_budget"): provider{budget: h.budget}}
}

type provider struct {
	component.StartFunc
	component.ShutdownFunc
	budget *budget.Budget
}

// MemoryBudget is the budget.
func (p provider) MemoryBudget() *budget.Budget { return p.budget }
