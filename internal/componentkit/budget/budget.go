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
	// chunk is how many bytes an account takes from the budget at a time. Within its chunk
	// it needs no lock.
	chunk = 64 << 10
	// overdraft is how far accounts may exceed the limit while others free their memory: by one
	// part of so many of the limit.
	overdraft = 8
	// spare is how much a shrinking account gives back beyond the need, so that the next chunk
	// asks nothing of it: one part of so many of the limit.
	spare = 16
	// returned is the share of the limit after whose release the memory goes back to the
	// operating system: one part of so many. Less is enough, but leastReturned, if accounts
	// released more than they still hold: then the collection of garbage costs little.
	returned      = 8
	leastReturned = 64 << 20
	// settleTime is the pause between such a release and the first return of memory. In it the
	// owner of a closed account drops its references. longestPause is the one before the last return.
	settleTime   = time.Second
	longestPause = 16 * settleTime
)

// Budget bounds what all accounts hold together. It is for many goroutines.
type Budget struct {
	mu    sync.Mutex
	limit int64
	// granted is how many bytes accounts have taken, and owed how many of them they have to give back.
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

// New makes a budget of so many bytes.
func New(limit int64) *Budget {
	return &Budget{limit: max(limit, chunk), free: debug.FreeOSMemory}
}

// Limit is the number of bytes that accounts may hold together.
func (b *Budget) Limit() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.limit
}

// SetLimit changes the number of bytes. A lower limit takes effect when an account grows.
func (b *Budget) SetLimit(limit int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.limit = max(limit, chunk)
}

// Used is the number of bytes that accounts hold together.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.granted
}

// Stop ends the budget's own work. Accounts stay usable.
func (b *Budget) Stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	if b.returning != nil {
		b.returning.Stop()
	}
}

// Group gives the accounts of one component a place. The name stands in errors and metrics;
// groups of the same name are one.
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

// Usage is what one group holds.
type Usage struct {
	Group string
	// Bytes are held, by Accounts. Asked is how often one of them had to give way.
	Bytes    int64
	Accounts int
	Asked    int64
}

// Usages are those of all groups.
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
	// passive is the part of granted that accounts have which cannot give way.
	passive int64
}

// Settings are what an account is opened with.
type Settings struct {
	// Limit is the most that the account itself may hold, in bytes; 0: no limit but the
	// budget's. Setting is its name, for errors.
	Limit   int64
	Setting string
	// Leave asks the owner to end its peer and close the account. Shrink asks it to hold
	// so many bytes less. Without either the account is passive: nothing is asked of it, so
	// its owner has a low bound of its own. They run in the goroutine of whichever
	// account needs memory, so they only send a signal: they neither block nor call the
	// account.
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

// Account is what one peer, or one component, holds. It is for many goroutines.
type Account struct {
	group    *Group
	settings Settings
	// used is how many bytes the owner has taken.
	used atomic.Int64
	// ceiling is up to how many bytes Take needs no lock: the granted ones, or -1 when the account
	// has to leave or is closed.
	ceiling atomic.Int64

	// The following are guarded by the budget's mu. owed is the part of granted that the
	// account has to give back.
	granted, owed int64
	leaving       *Error
	closed        bool
}

// Take takes bytes, all or none. The error is a *Error if the account's own limit is reached,
// or the budget's and this account gives way. A closed account gives another error.
func (a *Account) Take(bytes int) error {
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

// TakeOfHalf takes bytes if the account then holds no more than half of its own limit, which
// leaves the other half for memory that the peer cannot go on without.
func (a *Account) TakeOfHalf(bytes int) error {
	if used := a.used.Load() + int64(bytes); used > a.settings.Limit/2 {
		return &Error{Setting: a.settings.Setting, Limit: a.settings.Limit / 2, Account: used}
	}
	return a.Take(bytes)
}

// TakeIfRoom takes bytes if nobody has to give way for them, and reports whether it did.
func (a *Account) TakeIfRoom(bytes int) bool {
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

// Give gives bytes back.
func (a *Account) Give(bytes int) {
	used := a.used.Add(-int64(bytes))
	if ceiling := a.ceiling.Load(); ceiling < 0 || ceiling-used > 2*chunk {
		a.trim()
	}
}

// Set says that the account holds so many bytes, whatever it held before. It is for owners
// that know their size only afterwards. It returns how many bytes the owner has to free.
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
	// It is held already: the choice below only decides which account gives way.
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

// Hold says that the account holds so many bytes, whatever it held before: it takes or gives
// the difference. The error is that of Take; it also comes where the account has to leave
// and does not grow. It is for one goroutine at a time.
func (a *Account) Hold(bytes int64) error {
	more := bytes - a.used.Load()
	if more > 0 {
		return a.Take(int(more))
	}
	a.Give(int(-more))
	return a.Err()
}

// Err is why the account has to leave; nil: it does not, or it is closed.
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

// Used is what the account holds, in bytes.
func (a *Account) Used() int64 { return a.used.Load() }

// Close gives everything back. It is safe twice.
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

// grow gets the account what it holds beyond what is granted.
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

// trim gives back what is granted beyond what is used and a chunk.
func (a *Account) trim() {
	b := a.group.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.closed {
		return
	}
	keep := int64(chunk)
	if a.owed > 0 {
		keep = 0 // or an account that holds nothing would owe for ever
	}
	if much := a.granted - roundUp(a.used.Load()) - keep; much > 0 {
		a.grant(-much)
	}
	if a.leaving == nil && a.owed == 0 {
		a.ceiling.Store(a.granted)
	}
}

// grant changes how many bytes are granted to the account. Fewer bytes pay its debt first. The lock
// is held.
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

// owe changes how many bytes the account has to give back. The lock is held.
func (a *Account) owe(bytes int64) {
	a.owed += bytes
	a.group.owed += bytes
	a.group.budget.owed += bytes
}

// isPassive reports whether the account cannot give way.
func (a *Account) isPassive() bool { return a.settings.Leave == nil && a.settings.Shrink == nil }

// roundUp is the number of whole chunks that have room for bytes, in bytes.
func roundUp(bytes int64) int64 { return (bytes + chunk - 1) / chunk * chunk }
