// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package flamegraphexporter

import (
	"context"
	"fmt"
	"sync"

	"go.opentelemetry.io/collector/component"

	"github.com/callbraid/callbraid/internal/componentkit/budget"
)

// memory is the exporter's part of the memory budget of the process: one account for the call
// trees and the kept windows, and one for each response.
type memory struct {
	budget *budget.Budget
	group  *budget.Group
	// account is nil before the start. opened is closed at the start.
	account *budget.Account
	opened  chan struct{}
	// asked has room for one demand to free memory.
	asked chan struct{}
	// end ends the goroutine that frees memory, and done waits for it.
	end  context.CancelFunc
	done sync.WaitGroup
}

func newMemory() memory {
	return memory{opened: make(chan struct{}), asked: make(chan struct{}, 1)}
}

// openMemory opens the account. It is called once.
func (g *flameGraph) openMemory(host component.Host) {
	m := &g.memory
	m.budget = budget.Of(host)
	m.group = m.budget.Group(g.set.ID.String())
	m.account = m.group.Open(budget.Settings{Shrink: func(int64) { m.ask() }})
	close(m.opened)
	life, end := context.WithCancel(context.Background())
	m.end = end
	m.done.Go(func() { g.giveWay(life) })
}

// ask demands to free memory, which another goroutine does.
func (m *memory) ask() {
	select {
	case m.asked <- struct{}{}:
	default:
	}
}

// giveWay frees memory at each demand.
func (g *flameGraph) giveWay(life context.Context) {
	for {
		select {
		case <-life.Done():
			return
		case <-g.memory.asked:
			g.store.GiveWay()
			g.logBounds()
		}
	}
}

// stop ends the goroutine and closes the account.
func (m *memory) stop() {
	if m.end == nil {
		return // it was not started
	}
	m.end()
	m.done.Wait()
	m.account.Close()
}

// forPage reserves memory for a response. A page must not cost call trees or agents, so it only
// gets free memory.
func (g *flameGraph) forPage(bytes int64, leave func()) (release func(), err error) {
	m := &g.memory
	if free := m.budget.Limit() - m.budget.Used(); bytes > free {
		return nil, fmt.Errorf("%s is nearly reached: a page of about %d bytes needs more than the %d that are free", budget.Setting, bytes, max(free, 0))
	}
	account := m.group.Open(budget.Settings{Leave: func(*budget.Error) { leave() }})
	if err := account.Reserve(int(bytes)); err != nil {
		account.Close()
		return nil, err
	}
	return account.Close, nil
}
