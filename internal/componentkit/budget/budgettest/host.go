// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package budgettest has hosts with their own memory budget for tests.
package budgettest

import (
	"maps"

	"go.opentelemetry.io/collector/component"

	"github.com/callbraid/callbraid/internal/componentkit/budget"
)

// Host is a host with the extensions of another one, and with a budget.
func Host(other component.Host, b *budget.Budget) component.Host {
	extensions := maps.Clone(other.GetExtensions())
	if extensions == nil {
		extensions = map[component.ID]component.Component{}
	}
	extensions[component.MustNewID("memory_budget")] = extension{budget: b}
	return host{extensions}
}

type host struct {
	extensions map[component.ID]component.Component
}

func (h host) GetExtensions() map[component.ID]component.Component { return h.extensions }

// extension provides a budget, as the extension memory_budget does.
type extension struct {
	component.StartFunc
	component.ShutdownFunc
	budget *budget.Budget
}

func (e extension) MemoryBudget() *budget.Budget { return e.budget }
