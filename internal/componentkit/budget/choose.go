// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import "time"

// makeRoom makes room for the bytes that an account needs. It returns the accounts that have to give
// way. The caller asks them without the lock:
//
//  1. If there is room, nothing happens.
//  2. It chooses the largest account of the largest group, and repeats this until the chosen
//     ones will free enough. The account in need may be among them: it then gets an error.
//  3. Until they have freed it, accounts may exceed the limit by an eighth. Beyond that the
//     account in need gets an error too, unless it holds less than its equal share.
//
// The lock is held.
func (b *Budget) makeRoom(a *Account, need int64) (asked []*Account, err *Error) {
	for b.granted-b.owed+need > b.limit {
		victim := b.largest(a, need)
		if victim == nil {
			break
		}
		asked = append(asked, victim)
		victim.mustGive(b.granted - b.owed + need - b.limit)
		if victim == a {
			return asked, a.refusal(need)
		}
	}
	if b.granted+need > b.limit+b.limit/overdraft && !a.isBelowShare(need) {
		if a.settings.Leave != nil {
			a.mustGive(0)
		}
		return append(asked, a), a.refusal(need)
	}
	return asked, nil
}

// largest returns the account that gives way: the largest account of the largest group. It does not count owed memory,
// and accounts that cannot give way. The lock is held.
func (b *Budget) largest(inNeed *Account, need int64) (victim *Account) {
	var group *Group
	var most int64
	for _, g := range b.groups {
		holds := g.granted - g.owed - g.passive
		if g == inNeed.group && !inNeed.isPassive() {
			holds += need
		}
		if holds > most {
			group, most = g, holds
		}
	}
	if group == nil {
		return nil
	}
	most = 0
	for _, a := range group.accounts {
		holds := a.granted - a.owed
		if a == inNeed {
			holds += need
		}
		if a.leaving == nil && !a.isPassive() && holds > most {
			victim, most = a, holds
		}
	}
	return victim
}

// isBelowShare reports whether the account would hold less than an equal share of an equal
// share of the limit. The lock is held.
func (a *Account) isBelowShare(need int64) bool {
	b, g := a.group.budget, a.group
	groups := int64(0)
	for _, other := range b.groups {
		if len(other.accounts) > 0 {
			groups++
		}
	}
	return a.granted+need <= b.limit/max(groups, 1)/int64(max(len(g.accounts), 1))
}

// mustGive makes the account owe all its bytes or, if it shrinks, the excess and some to spare. The lock is held.
func (a *Account) mustGive(excess int64) {
	b := a.group.budget
	a.group.asked++
	a.ceiling.Store(-1)
	if a.settings.Leave == nil {
		a.owe(min(a.granted-a.owed, excess+b.limit/spare))
		return
	}
	a.owe(a.granted - a.owed)
	a.leaving = a.refusal(0)
}

// refusal returns the error of an account that needs bytes and gets none. The lock is held.
func (a *Account) refusal(need int64) *Error {
	b, g := a.group.budget, a.group
	return &Error{Setting: Setting, Limit: b.limit, Used: b.granted, Group: g.name, InGroup: g.granted, Account: a.granted + need}
}

// ask asks the owners of accounts to give way, except the one in need, which gets the error.
func ask(asked []*Account, inNeed *Account) {
	for _, a := range asked {
		switch {
		case a == inNeed:
		case a.settings.Leave != nil:
			a.settings.Leave(a.leaving)
		default:
			b := a.group.budget
			b.mu.Lock()
			owed := a.owed
			b.mu.Unlock()
			a.settings.Shrink(owed)
		}
	}
}

// returnMemory plans to return memory to the operating system when accounts hold much less than
// before. Without it the process would keep that memory for minutes:
//
//  1. The first return is settleTime later. By then most owners have dropped their references.
//  2. Some drop them later: they still deliver a batch, or close a connection. So there are more
//     returns, each after twice the pause of the one before, up to longestPause.
//  3. When much is released again, the pauses begin at settleTime again.
//
// The lock is held.
func (b *Budget) returnMemory() {
	released := b.peak - b.granted
	much := released >= b.limit/returned || released >= leastReturned && released > b.granted
	if b.stopped || b.pause == settleTime || !much {
		return
	}
	b.returnAfter(settleTime)
}

// returnAfter plans the next return, in place of one that was planned. The lock is held.
func (b *Budget) returnAfter(pause time.Duration) {
	if b.returning != nil {
		b.returning.Stop()
	}
	b.pause = pause
	b.returning = time.AfterFunc(pause, func() {
		b.mu.Lock()
		b.pause, b.peak = 0, b.granted
		stopped := b.stopped
		b.mu.Unlock()
		if stopped {
			return
		}
		b.free()
		b.mu.Lock()
		defer b.mu.Unlock()
		if next := 2 * pause; next <= longestPause && b.pause == 0 {
			b.returnAfter(next)
		}
	})
}
