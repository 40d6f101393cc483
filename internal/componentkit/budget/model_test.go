// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// model is a slow budget without stored sums, ceilings and locks. It adds up all accounts each time it needs a number.
type model struct {
	limit    int64
	accounts []*modelAccount
}

type modelAccount struct {
	model         *model
	group         string
	kind          kind
	used, granted int64
	owed          int64
	leaving       bool
}

// kind is the way in which an account gives way.
type kind int

const (
	leaves kind = iota
	shrinks
	passive
	kinds
)

// sum adds up a number of the accounts that match.
func (m *model) sum(match func(*modelAccount) bool, number func(*modelAccount) int64) (sum int64) {
	for _, a := range m.accounts {
		if match(a) {
			sum += number(a)
		}
	}
	return sum
}

func anyAccount(*modelAccount) bool         { return true }
func (a *modelAccount) canGiveWay() bool    { return a.kind != passive }
func (a *modelAccount) grantedNow() int64   { return a.granted }
func (a *modelAccount) staysGranted() int64 { return a.granted - a.owed }

// victim returns the largest account of the largest group. The sizes include the bytes that inNeed needs.
func (m *model) victim(inNeed *modelAccount, need int64) (victim *modelAccount) {
	holds := func(a *modelAccount) int64 {
		if a == inNeed {
			return a.staysGranted() + need
		}
		return a.staysGranted()
	}
	largest, most := "", int64(0)
	for _, group := range modelGroups {
		inGroup := func(a *modelAccount) bool { return a.group == group && a.canGiveWay() }
		if sum := m.sum(inGroup, holds); sum > most {
			largest, most = group, sum
		}
	}
	most = 0
	for _, a := range m.accounts {
		if a.group == largest && a.canGiveWay() && !a.leaving && holds(a) > most {
			victim, most = a, holds(a)
		}
	}
	return victim
}

// makeRoom returns the accounts that were asked, and whether the one in need is refused.
func (m *model) makeRoom(a *modelAccount, need int64) (asked []*modelAccount, refused bool) {
	for m.sum(anyAccount, (*modelAccount).staysGranted)+need > m.limit {
		victim := m.victim(a, need)
		if victim == nil {
			break
		}
		victim.giveWay(m.sum(anyAccount, (*modelAccount).staysGranted) + need - m.limit)
		asked = append(asked, victim)
		if victim == a {
			return asked, true
		}
	}
	if m.sum(anyAccount, (*modelAccount).grantedNow)+need > m.limit+m.limit/overdraft && a.granted+need > m.share(a) {
		if a.kind == leaves {
			a.giveWay(0)
		}
		return asked, true
	}
	return asked, false
}

// share returns the equal share of an account in the equal share of its group.
func (m *model) share(a *modelAccount) int64 {
	count := map[string]int64{}
	for _, other := range m.accounts {
		count[other.group]++
	}
	return m.limit / int64(len(count)) / count[a.group]
}

func (a *modelAccount) giveWay(excess int64) {
	if a.kind == shrinks {
		a.owed += min(a.staysGranted(), excess+a.model.limit/spare)
		return
	}
	a.owed, a.leaving = a.granted, true
}

func (a *modelAccount) reserve(bytes int64) (asked []*modelAccount, refused bool) {
	if a.leaving || a.owed > 0 {
		return nil, true
	}
	need := roundUp(a.used+bytes) - a.granted
	if need > 0 {
		if asked, refused = a.model.makeRoom(a, need); refused {
			return asked, true
		}
		a.granted += need
	}
	a.used += bytes
	return asked, false
}

func (a *modelAccount) reserveIfRoom(bytes int64) bool {
	need := max(0, roundUp(a.used+bytes)-a.granted)
	if a.leaving || a.owed > 0 || need+a.model.sum(anyAccount, (*modelAccount).grantedNow) > a.model.limit {
		return false
	}
	a.granted, a.used = a.granted+need, a.used+bytes
	return true
}

func (a *modelAccount) release(bytes int64) {
	a.used -= bytes
	if a.granted-a.used > 2*chunk || a.leaving || a.owed > 0 {
		a.trim()
	}
}

func (a *modelAccount) trim() {
	keep := int64(chunk)
	if a.owed > 0 {
		keep = 0
	}
	if much := a.granted - roundUp(a.used) - keep; much > 0 {
		a.granted -= much
		a.owed = max(0, a.owed-much)
	}
}

func (a *modelAccount) set(bytes int64) (asked []*modelAccount, excess int64) {
	a.used = bytes
	if a.leaving || a.owed > 0 || bytes > a.granted || a.granted-bytes > 2*chunk {
		a.trim()
		if need := roundUp(bytes) - a.granted; need > 0 {
			a.granted += need
			asked, _ = a.model.makeRoom(a, 0)
		}
	}
	return asked, a.owed
}

func (a *modelAccount) close() {
	m := a.model
	m.accounts = slices.DeleteFunc(m.accounts, func(other *modelAccount) bool { return other == a })
}

var modelGroups = []string{"bytefrog", "lttng_live", "stack_pairing"}

// The test calls both in the same random order. It compares each number, each refusal, and each request to an account.
func TestTheBudgetBehavesLikeItsSlowModel(t *testing.T) {
	seeds := uint64(20)
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 2))
		limit := int64(4+random.IntN(60)) * testMiB
		b, m := quietBudget(limit), &model{limit: limit}
		for _, group := range modelGroups {
			b.Group(group)
		}
		type pair struct {
			*modelAccount
			real *Account
		}
		var pairs []pair
		var asked []*Account
		for step := range 1500 {
			asked = nil
			var expected []*modelAccount
			what := "open"
			if n := random.IntN(100); n < 3 || len(pairs) == 0 {
				p := pair{modelAccount: &modelAccount{model: m, group: modelGroups[random.IntN(len(modelGroups))], kind: kind(random.IntN(int(kinds)))}}
				var s Settings
				note := func() { asked = append(asked, p.real) }
				switch p.kind {
				case leaves:
					s.Leave = func(*Error) { note() }
				case shrinks:
					s.Shrink = func(int64) { note() }
				}
				p.real = b.Group(p.group).Open(s)
				m.accounts, pairs = append(m.accounts, p.modelAccount), append(pairs, p)
			} else {
				i := random.IntN(len(pairs))
				p, bytes := pairs[i], 1+random.Int64N(limit/16)
				var inNeed *Account
				switch {
				case n < 5 || p.leaving && n < 40:
					what = "close"
					p.close()
					p.real.Close()
					pairs = append(pairs[:i], pairs[i+1:]...)
				case n < 15:
					what = fmt.Sprint("reserve if there is room ", bytes)
					require.Equal(t, p.reserveIfRoom(bytes), p.real.ReserveIfRoom(int(bytes)), "seed %d, step %d: %s", seed, step, what)
				case n < 60:
					what, inNeed = fmt.Sprint("reserve ", bytes), p.real
					var refused bool
					expected, refused = p.reserve(bytes)
					require.Equal(t, refused, p.real.Reserve(int(bytes)) != nil, "seed %d, step %d: %s", seed, step, what)
				case n < 80 && p.used > 0:
					bytes = min(bytes, p.used)
					what = fmt.Sprint("release ", bytes)
					p.release(bytes)
					p.real.Release(int(bytes))
				case p.kind != leaves:
					bytes *= int64(random.IntN(3))
					what, inNeed = fmt.Sprint("set ", bytes), p.real
					var excess int64
					expected, excess = p.set(bytes)
					require.Equal(t, excess, p.real.Set(bytes), "seed %d, step %d: %s", seed, step, what)
				}
				// The account in need learns from its result that it has to give way.
				expected = slices.DeleteFunc(expected, func(a *modelAccount) bool { return inNeed == p.real && a == p.modelAccount })
			}
			require.Len(t, asked, len(expected), "seed %d, step %d: %s", seed, step, what)
			for _, p := range pairs {
				was := false
				for i, a := range expected {
					was = was || a == p.modelAccount && asked[i] == p.real
				}
				require.Equal(t, was, slices.Contains(asked, p.real), "seed %d, step %d: %s: the asked account", seed, step, what)
				require.Equal(t,
					[]any{p.used, p.granted, p.owed, p.leaving},
					[]any{p.real.Used(), p.real.granted, p.real.owed, p.real.leaving != nil},
					"seed %d, step %d: %s: used, granted, owed, leaving", seed, step, what)
			}
			checkSums(t, b, seed)
		}
	}
}
