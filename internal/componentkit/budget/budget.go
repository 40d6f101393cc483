// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// chunk is the number of bytes that an account reserves in the budget at a time. Within its chunk it needs no lock.
	chunk = 64 << 10
	// Accounts may exceed the limit by limit/overdraft while others free their memory.
	overdraft = 8
	// A shrinking account releases limit/spare more than necessary, so that the next chunk needs no other release.
	spare = 16
	// After a release of limit/returned, the budget returns memory to the operating system. leastReturned is enough if
	// accounts released more than they still hold: then the collection of garbage costs little.
	returned      = 8
	leastReturned = 64 << 20
	// settleTime is the pause between such a release and the first return of memory. During it, the owner of a closed
	// account drops its references. longestPause is the pause before the last return.
	settleTime   = time.Second
	longestPause = 16 * settleTime
)

// Budget bounds the memory of all accounts together. Its methods can be called from many goroutines.
type Budget struct {
	mu    sync.Mutex
	limit int64
	// granted is the number of bytes that accounts have reserved. owed is the part of it that they must release.
	granted, owed int64
	// groups has one for each component, also for those without an open account.
	groups []*Group

	// peak is the most that was granted since the last return of memory to the operating system.
	peak int64
	// returning fires at the next return, pause after it was planned; 0: none is planned.
	returning *time.Timer
	pause     time.Duration
	stopped   bool
	// free returns unused memory to the operating system.
	free func()
}

// New returns a budget with a limit in bytes.
func New(limit int64) *Budget {
	return &Budget{limit: max(limit, chunk), free: debug.FreeOSMemory}
}

// Limit returns the number of bytes that accounts may hold together.
func (b *Budget) Limit() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.limit
}

// SetLimit changes the limit, in bytes. A lower limit takes effect when an account grows.
func (b *Budget) SetLimit(limit int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.limit = max(limit, chunk)
}

// Used returns the number of bytes that accounts hold together.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.granted
}

// Stop stops the timer of the budget. Accounts stay usable.
func (b *Budget) Stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	if b.returning != nil {
		b.returning.Stop()
	}
}

// Group returns the group of one component's accounts. The name stands in errors and metrics. The same name returns the
// same group.
func (b *Budget) Group(name string) *Group {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, g := range b.groups {
		if g.name == name {
			return g
		}
	}
	g := &Group{budget: b, name: name}
	b.groups = append(b.groups, g)
	return g
}

// Usage is the memory of one group.
type Usage struct {
	Group string
	// Bytes is the size of all Accounts. Asked counts how often an account had to give way.
	Bytes    int64
	Accounts int
	Asked    int64
}

// Usages returns the usage of each group.
func (b *Budget) Usages() []Usage {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]Usage, 0, len(b.groups))
	for _, g := range b.groups {
		all = append(all, Usage{Group: g.name, Bytes: g.granted, Accounts: len(g.accounts), Asked: g.asked})
	}
	return all
}

// Group has the accounts of one component.
type Group struct {
	budget *Budget
	name   string
	// The following are guarded by the budget's mu.
	accounts      []*Account
	granted, owed int64
	asked         int64
	// passive is the part of granted that belongs to accounts that cannot give way.
	passive int64
}

// Limit returns the limit of the budget, in bytes.
func (g *Group) Limit() int64 { return g.budget.Limit() }

// Settings are the settings of an account.
type Settings struct {
	// Limit is the limit of the account itself, in bytes; 0: only the budget's. Setting is its name, for errors.
	Limit   int64
	Setting string
	// Leave asks the owner to disconnect its peer and close the account. Shrink asks it to free bytes. Without both, the
	// account is passive: the budget never asks it, so its owner needs its own low bound. Leave and Shrink run in the
	// goroutine of another account. So they only send a signal: they must not block or call the account.
	Leave  func(*Error)
	Shrink func(bytes int64)
}

// Open opens an account.
func (g *Group) Open(s Settings) *Account {
	b := g.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.Limit <= 0 {
		s.Limit = 1<<63 - 1
	}
	a := &Account{group: g, settings: s}
	g.accounts = append(g.accounts, a)
	return a
}

// Account is the memory of one peer or one component. Its methods can be called from many goroutines.
type Account struct {
	group    *Group
	settings Settings
	// used is the number of bytes that the owner has reserved.
	used atomic.Int64
	// ceiling is the number of bytes up to which Reserve needs no lock: the granted ones, or -1 if the
	// account has to leave or is closed.
	ceiling atomic.Int64

	// The following are guarded by the budget's mu. owed is the part of granted that the account has
	// to release.
	granted, owed int64
	leaving       *Error
	closed        bool
}

// Reserve reserves bytes, all or none. The error is a *Error if the account's own limit is reached, or if the budget's
// limit is reached and this account gives way. A closed account returns another error.
func (a *Account) Reserve(bytes int) error {
	used := a.used.Add(int64(bytes))
	if used > a.settings.Limit {
		a.used.Add(-int64(bytes))
		return &Error{Setting: a.settings.Setting, Limit: a.settings.Limit, Account: used}
	}
	if used <= a.ceiling.Load() {
		return nil
	}
	if err := a.grow(); err != nil {
		a.used.Add(-int64(bytes))
		return err
	}
	return nil
}

// ReserveOfHalf reserves bytes if the account then holds at most half of its own limit. The other half stays free for
// memory that the peer needs to continue.
func (a *Account) ReserveOfHalf(bytes int) error {
	if used := a.used.Load() + int64(bytes); used > a.settings.Limit/2 {
		return &Error{Setting: a.settings.Setting, Limit: a.settings.Limit / 2, Account: used}
	}
	return a.Reserve(bytes)
}

// ReserveIfRoom reserves bytes if no account has to give way for them, and reports whether it did.
func (a *Account) ReserveIfRoom(bytes int) bool {
	b := a.group.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	used := a.used.Add(int64(bytes))
	need := max(0, roundUp(used)-a.granted)
	if a.closed || a.leaving != nil || a.owed > 0 || used > a.settings.Limit || b.granted+need > b.limit {
		a.used.Add(-int64(bytes))
		return false
	}
	a.grant(need)
	a.ceiling.Store(a.granted)
	return true
}

// Release releases bytes.
func (a *Account) Release(bytes int) {
	used := a.used.Add(-int64(bytes))
	if ceiling := a.ceiling.Load(); ceiling < 0 || ceiling-used > 2*chunk {
		a.trim()
	}
}

// Set sets the size of the account. It is for owners that know their size only afterwards. It returns the number of
// bytes that the owner must free.
func (a *Account) Set(bytes int64) (excess int64) {
	a.used.Store(bytes)
	if ceiling := a.ceiling.Load(); bytes <= ceiling && ceiling-bytes <= 2*chunk {
		return 0
	}
	a.trim()
	b := a.group.budget
	b.mu.Lock()
	if a.closed {
		b.mu.Unlock()
		return 0
	}
	// The owner holds the bytes already: the choice below only decides which account gives way.
	var asked []*Account
	if need := roundUp(bytes) - a.granted; need > 0 {
		a.grant(need)
		asked, _ = b.makeRoom(a, 0)
	}
	excess = a.owed
	if excess == 0 {
		a.ceiling.Store(a.granted)
	}
	b.mu.Unlock()
	ask(asked, a)
	return excess
}

// Hold sets the size of the account: it reserves or releases the difference. The error is that of Reserve. An account that
// has to leave gets it even if it does not grow. One goroutine at a time may call it.
func (a *Account) Hold(bytes int64) error {
	more := bytes - a.used.Load()
	if more > 0 {
		return a.Reserve(int(more))
	}
	a.Release(int(-more))
	return a.Err()
}

// Err returns the reason why the account has to leave; nil: it does not, or it is closed.
func (a *Account) Err() error {
	if a.ceiling.Load() >= 0 {
		return nil
	}
	b := a.group.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.leaving != nil && !a.closed {
		return a.leaving
	}
	return nil
}

// Used returns the size of the account, in bytes.
func (a *Account) Used() int64 { return a.used.Load() }

// Close releases all bytes. A second call does nothing.
func (a *Account) Close() {
	b := a.group.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.closed {
		return
	}
	a.closed = true
	a.ceiling.Store(-1)
	a.grant(-a.granted)
	g := a.group
	if i := slices.Index(g.accounts, a); i >= 0 {
		g.accounts = slices.Delete(g.accounts, i, i+1)
	}
}

// grow reserves the bytes of the account that are not granted yet.
func (a *Account) grow() error {
	b := a.group.budget
	b.mu.Lock()
	if a.closed {
		b.mu.Unlock()
		return errClosed
	}
	if a.leaving != nil {
		b.mu.Unlock()
		return a.leaving
	}
	if a.owed > 0 {
		defer b.mu.Unlock()
		return a.refusal(0)
	}
	need := roundUp(a.used.Load()) - a.granted
	if need <= 0 {
		b.mu.Unlock()
		return nil
	}
	asked, err := b.makeRoom(a, need)
	if err == nil {
		a.grant(need)
		a.ceiling.Store(a.granted)
	}
	b.mu.Unlock()
	ask(asked, a)
	if err != nil {
		return err
	}
	return nil
}

// trim releases the granted bytes beyond the used ones and a chunk.
func (a *Account) trim() {
	b := a.group.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.closed {
		return
	}
	keep := int64(chunk)
	if a.owed > 0 {
		keep = 0 // otherwise an empty account would owe forever
	}
	if much := a.granted - roundUp(a.used.Load()) - keep; much > 0 {
		a.grant(-much)
	}
	if a.leaving == nil && a.owed == 0 {
		a.ceiling.Store(a.granted)
	}
}

// grant changes the granted bytes of the account. A decrease pays its debt first. The lock is held.
func (a *Account) grant(bytes int64) {
	g, b := a.group, a.group.budget
	a.granted += bytes
	g.granted += bytes
	b.granted += bytes
	if a.isPassive() {
		g.passive += bytes
	}
	b.peak = max(b.peak, b.granted)
	if bytes >= 0 {
		return
	}
	paid := min(-bytes, a.owed)
	a.owe(-paid)
	b.returnMemory()
}

// owe changes the number of bytes that the account must release. The lock is held.
func (a *Account) owe(bytes int64) {
	a.owed += bytes
	a.group.owed += bytes
	a.group.budget.owed += bytes
}

// isPassive reports whether the account cannot give way.
func (a *Account) isPassive() bool { return a.settings.Leave == nil && a.settings.Shrink == nil }

// roundUp returns bytes, rounded up to whole chunks.
func roundUp(bytes int64) int64 { return (bytes + chunk - 1) / chunk * chunk }
