// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const testMiB = 1 << 20

// peer is an owner of an account. It notes the requests to give way.
type peer struct {
	*Account
	name  string
	asked int
	why   *Error
	owes  int64
}

// leaver opens an account whose owner leaves on request.
func leaver(g *Group, name string) *peer {
	p := &peer{name: name}
	p.Account = g.Open(Settings{Leave: func(why *Error) { p.asked, p.why = p.asked+1, why }})
	return p
}

// shrinker opens an account whose owner frees memory on request.
func shrinker(g *Group, name string) *peer {
	p := &peer{name: name}
	p.Account = g.Open(Settings{Shrink: func(bytes int64) { p.asked, p.owes = p.asked+1, bytes }})
	return p
}

func quietBudget(limit int64) *Budget {
	b := New(limit)
	b.free = func() {}
	return b
}

func TestAtTheBoundTheLargestAccountOfTheLargestGroupHasToLeave(t *testing.T) {
	b := quietBudget(100 * testMiB)
	runs, trees := b.Group("bytefrog"), b.Group("flame_graph")
	honest, hostile, tree := leaver(runs, "honest"), leaver(runs, "hostile"), shrinker(trees, "tree")
	require.NoError(t, honest.Reserve(5*testMiB))
	require.Zero(t, tree.Set(40*testMiB))
	for range 55 {
		require.NoError(t, hostile.Reserve(testMiB))
	}
	require.NoError(t, honest.Reserve(testMiB), "the honest run gets memory, because another one has to leave")
	assert.Equal(t, 1, hostile.asked)
	assert.Zero(t, honest.asked)
	assert.Zero(t, tree.asked)
	assert.EqualError(t, hostile.why,
		"limit_mib of memory_budget is reached: 100.0 MiB of 100.0 MiB are in use, 60.0 MiB of these by bytefrog and 55.0 MiB by this one")
	require.ErrorAs(t, hostile.Reserve(1), new(*Error), "the run that has to leave gets no more")
	hostile.Close()
	assert.Equal(t, int64(46*testMiB), b.Used())
	require.NoError(t, honest.Reserve(testMiB))
	assert.Equal(t, 1, hostile.asked)
}

func TestTheAccountInNeedGetsTheErrorIfItHoldsMost(t *testing.T) {
	b := quietBudget(10 * testMiB)
	runs := b.Group("bytefrog")
	small, large := leaver(runs, "small"), leaver(runs, "large")
	require.NoError(t, small.Reserve(testMiB))
	require.NoError(t, large.Reserve(9*testMiB))
	err := large.Reserve(testMiB)
	require.ErrorContains(t, err, "limit_mib of memory_budget is reached")
	assert.Equal(t, int64(9*testMiB), large.Used(), "all or none")
	assert.Zero(t, large.asked, "it has its error")
	assert.Zero(t, small.asked)
}

func TestAShrinkingAccountOwesTheExcessAndSomeToSpare(t *testing.T) {
	b := quietBudget(16 * testMiB)
	tree, runs := shrinker(b.Group("flame_graph"), "tree"), b.Group("bytefrog")
	require.Zero(t, tree.Set(14*testMiB))
	run := leaver(runs, "run")
	require.NoError(t, run.Reserve(3*testMiB))
	assert.Equal(t, 1, tree.asked)
	assert.Equal(t, int64(2*testMiB), tree.owes, "one MiB is too much, and a sixteenth of the limit is to spare")
	assert.Equal(t, int64(2*testMiB), tree.Set(14*testMiB), "it is reminded of it")
	assert.Zero(t, tree.Set(12*testMiB-2*chunk), "it has released the excess")
	assert.Zero(t, run.asked)
}

func TestAShrinkingAccountOwesAlsoBytesThatItHasJustSet(t *testing.T) {
	b := quietBudget(16 * testMiB)
	tree := shrinker(b.Group("flame_graph"), "tree")
	assert.Equal(t, int64(5*testMiB), tree.Set(20*testMiB))
	assert.Zero(t, tree.Set(15*testMiB-2*chunk))
}

func TestAShrinkingAccountGetsNoMoreWhileItOwes(t *testing.T) {
	b := quietBudget(16 * testMiB)
	queue := shrinker(b.Group("logs"), "queue")
	require.NoError(t, queue.Reserve(16*testMiB))
	require.Error(t, queue.Reserve(testMiB))
	require.Error(t, queue.Reserve(testMiB))
	queue.Release(4 * testMiB)
	require.NoError(t, queue.Reserve(testMiB))
}

func TestAnAccountHasItsOwnLimit(t *testing.T) {
	b := quietBudget(16 * testMiB)
	a := b.Group("bytefrog").Open(Settings{Limit: 1000, Setting: "limits.max_run_memory", Leave: func(*Error) { t.Error("asked") }})
	require.NoError(t, a.Reserve(600))
	require.EqualError(t, a.Reserve(401), "limits.max_run_memory is reached (1000 bytes)")
	require.NoError(t, a.Reserve(400))
	a.Release(800)
	require.EqualError(t, a.ReserveOfHalf(301), "limits.max_run_memory is reached (500 bytes)")
	require.NoError(t, a.ReserveOfHalf(300))
}

func TestAClosedAccountReleasesAllAndGetsNothing(t *testing.T) {
	b := quietBudget(16 * testMiB)
	p := leaver(b.Group("bytefrog"), "run")
	require.NoError(t, p.Reserve(testMiB))
	p.Close()
	p.Close()
	assert.Zero(t, b.Used())
	require.ErrorIs(t, p.Reserve(1), errClosed)
	p.Release(testMiB)
	assert.Zero(t, p.Set(testMiB))
	assert.Zero(t, b.Used())
}

// returnsOf records the times at which a budget returned memory to the operating system.
func returnsOf(b *Budget) *[]time.Duration {
	began, returns := time.Now(), new([]time.Duration)
	b.free = func() { *returns = append(*returns, time.Since(began)) }
	return returns
}

func TestMemoryGoesBackToTheSystemWhenMuchWasReleased(t *testing.T) {
	for _, test := range []struct {
		name    string
		release int
		then    func(b *Budget, p *peer)
		returns []time.Duration // seconds
	}{
		{"an eighth of the limit was released", 2, nil, []time.Duration{1, 3, 7, 15, 31}},
		{"less was released", 1, nil, nil},
		{"little more is released between two returns", 2, func(_ *Budget, p *peer) {
			time.Sleep(2500 * time.Millisecond)
			p.Release(testMiB)
		}, []time.Duration{1, 3, 7, 15, 31}},
		{"much more is released in a long pause", 2, func(_ *Budget, p *peer) {
			time.Sleep(9 * time.Second)
			p.Release(2 * testMiB)
		}, []time.Duration{1, 3, 7, 10, 12, 16, 24, 40}},
		{"much is released again and again", 2, func(_ *Budget, p *peer) {
			for range 2 {
				time.Sleep(400 * time.Millisecond)
				p.Release(2 * testMiB)
			}
		}, []time.Duration{1, 3, 7, 15, 31}},
		{"the budget is stopped", 2, func(b *Budget, p *peer) {
			time.Sleep(4 * time.Second)
			b.Stop()
			p.Release(4 * testMiB)
		}, []time.Duration{1, 3}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := New(16 * testMiB)
				defer b.Stop()
				returns := returnsOf(b)
				p := leaver(b.Group("bytefrog"), "run")
				require.NoError(t, p.Reserve(8*testMiB))
				p.Release(test.release * testMiB)
				p.Release(2 * chunk) // an account may reserve so much more than it holds
				if test.then != nil {
					test.then(b, p)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				var want []time.Duration
				for _, seconds := range test.returns {
					want = append(want, seconds*time.Second)
				}
				assert.Equal(t, want, *returns)
			})
		})
	}
}

// A collector without an offender releases a small part of its limit, and still has to get small again.
func TestLittleMemoryGoesBackWhenLittleIsStillInUse(t *testing.T) {
	for _, test := range []struct {
		name        string
		take, give  int // MiB
		wantReturns int
	}{
		{"64 MiB, and less remains", 100, 66, 5},
		{"less than 64 MiB", 100, 60, 0},
		{"64 MiB, and more remains", 400, 66, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := New(4096 * testMiB)
				defer b.Stop()
				returns := returnsOf(b)
				p := leaver(b.Group("bytefrog"), "run")
				require.NoError(t, p.Reserve(test.take*testMiB))
				p.Release(test.give * testMiB)
				time.Sleep(time.Minute)
				synctest.Wait()
				assert.Len(t, *returns, test.wantReturns)
			})
		})
	}
}

func TestReleasesWhileMemoryIsReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(16 * testMiB)
		defer b.Stop()
		p := leaver(b.Group("bytefrog"), "run")
		returns := returnsOf(b)
		free := b.free
		b.free = func() {
			free()
			if len(*returns) == 1 {
				p.Release(2 * testMiB)
				time.Sleep(500 * time.Millisecond)
			}
		}
		require.NoError(t, p.Reserve(8*testMiB))
		p.Release(3 * testMiB)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		assert.Equal(t, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}, *returns,
			"the return after the release is not put off by the one that was under way")
	})
}

// TestTheChoiceIsFair gives random accounts random sizes. Owners give way after some time, as real ones do. The budget
// never asks an account below its equal share, sums stay right, and the hard bound holds.
func TestTheChoiceIsFair(t *testing.T) {
	seeds := uint64(30)
	if testing.Short() {
		seeds = 3
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 1))
		b := quietBudget(64 * testMiB)
		var peers []*peer
		check := func(p *peer) func() {
			return func() {
				groups, holds, share := 0, p.granted, b.limit
				for _, g := range b.groups {
					if len(g.accounts) > 0 {
						groups++
					}
				}
				share = share / int64(groups) / int64(len(p.group.accounts))
				require.GreaterOrEqual(t, holds+2*testMiB, share, "seed %d: %s holds less than its share and was asked", seed, p.name)
			}
		}
		for range 2000 {
			group := b.Group(string(rune('a' + random.IntN(4))))
			switch n := random.IntN(10); {
			case len(peers) == 0 || n == 0:
				p := &peer{name: group.name}
				if random.IntN(3) == 0 {
					p.Account = group.Open(Settings{Shrink: func(bytes int64) { p.owes = bytes; check(p)() }})
				} else {
					p.Account = group.Open(Settings{Leave: func(why *Error) { p.why = why; check(p)() }})
				}
				peers = append(peers, p)
			case n == 1:
				i := random.IntN(len(peers))
				peers[i].Close()
				peers = append(peers[:i], peers[i+1:]...)
			default:
				p := peers[random.IntN(len(peers))]
				bytes := 1 + random.IntN(2*testMiB)
				switch {
				case p.settings.Shrink != nil:
					p.Set(max(p.Used()+int64(bytes)-p.owes, 0))
					p.owes = 0
				case p.why != nil || p.Reserve(bytes) != nil:
					if random.IntN(3) == 0 {
						p.Close()
						peers = slicesWithout(peers, p)
					}
				case n < 5:
					p.Release(random.IntN(int(p.Used())))
				}
			}
			checkSums(t, b, seed)
		}
		for _, p := range peers {
			p.Close()
		}
		require.Zero(t, b.Used())
		require.Zero(t, b.owed)
	}
}

func slicesWithout(peers []*peer, p *peer) []*peer {
	for i := range peers {
		if peers[i] == p {
			return append(peers[:i], peers[i+1:]...)
		}
	}
	return peers
}

func checkSums(t *testing.T, b *Budget, seed uint64) {
	var granted, owed int64
	for _, g := range b.groups {
		var inGroup, owes int64
		for _, a := range g.accounts {
			inGroup, owes = inGroup+a.granted, owes+a.owed
			require.GreaterOrEqual(t, a.granted, a.owed)
			require.GreaterOrEqual(t, a.owed, int64(0))
		}
		require.Equal(t, inGroup, g.granted, "seed %d", seed)
		require.Equal(t, owes, g.owed, "seed %d", seed)
		granted, owed = granted+inGroup, owed+owes
	}
	require.Equal(t, granted, b.granted, "seed %d", seed)
	require.Equal(t, owed, b.owed, "seed %d", seed)
}

func TestManyGoroutinesShareABudget(t *testing.T) {
	b := quietBudget(32 * testMiB)
	var running sync.WaitGroup
	for i := range 8 {
		running.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 2))
			group := b.Group(string(rune('a' + i%3)))
			for range 50 {
				leave := make(chan struct{}, 1)
				a := group.Open(Settings{Leave: func(*Error) { leave <- struct{}{} }})
				for a.Reserve(random.IntN(testMiB)) == nil && len(leave) == 0 && random.IntN(20) > 0 {
					a.Release(min(random.IntN(testMiB/2), int(a.Used())))
				}
				a.Close()
			}
		})
	}
	running.Wait()
	assert.Zero(t, b.Used())
	b.mu.Lock()
	defer b.mu.Unlock()
	assert.Zero(t, b.owed)
}

func TestTheDefaultIsAShareOfTheMemoryOfTheProcess(t *testing.T) {
	available := Available()
	assert.Positive(t, available)
	assert.Equal(t, available/100*DefaultPercentage, Of(nil).Limit())
	assert.Same(t, Of(nil), Of(nil))
}

func TestUsagesNameEachGroup(t *testing.T) {
	b := quietBudget(16 * testMiB)
	p := leaver(b.Group("bytefrog"), "run")
	require.NoError(t, p.Reserve(testMiB))
	require.Error(t, p.Reserve(16*testMiB))
	assert.Equal(t, []Usage{{Group: "bytefrog", Bytes: testMiB, Accounts: 1, Asked: 1}}, b.Usages())
	b.SetLimit(64 * testMiB)
	assert.Equal(t, int64(64*testMiB), b.Limit())
}

func BenchmarkReserveAndRelease(b *testing.B) {
	a := New(1 << 30).Group("bytefrog").Open(Settings{Leave: func(*Error) {}})
	_ = a.Reserve(chunk)
	b.ReportAllocs()
	for b.Loop() {
		if a.Reserve(64) != nil {
			b.Fatal("refused")
		}
		a.Release(64)
	}
}

// An account that has released all bytes on request gets memory again.
func TestAnAccountThatHoldsNothingOwesNothing(t *testing.T) {
	b := New(1 << 20)
	a := b.Group("otlp").Open(Settings{Shrink: func(int64) {}})
	require.NoError(t, a.Reserve(512<<10))
	require.Error(t, a.Reserve(2<<20))
	a.Release(512 << 10)
	require.NoError(t, a.Reserve(512<<10))
}

func TestAPassiveAccountIsNeverAsked(t *testing.T) {
	b := quietBudget(16 * testMiB)
	runs := b.Group("bytefrog")
	connections := runs.Open(Settings{})
	require.Zero(t, connections.Set(10*testMiB))
	small, large := leaver(runs, "small"), leaver(runs, "large")
	require.NoError(t, small.Reserve(testMiB))
	require.NoError(t, large.Reserve(4*testMiB))
	require.NoError(t, small.Reserve(2*testMiB))
	assert.Equal(t, 1, large.asked)
	assert.Zero(t, small.asked)
	large.Close()
	require.Zero(t, connections.Set(0))
	small.Close()
	connections.Close()
	assert.Zero(t, b.Used())
	assert.Zero(t, runs.passive)
}

func TestAnAccountThatHasReleasedAllOwedBytesGetsMemoryAgain(t *testing.T) {
	b := quietBudget(256 * testMiB)
	queue, runs := shrinker(b.Group("logs"), "queue"), b.Group("bytefrog")
	require.NoError(t, queue.Reserve(2*testMiB))
	var all []*peer
	for range 254 {
		p := leaver(runs, "run")
		require.NoError(t, p.Reserve(testMiB-chunk))
		all = append(all, p)
	}
	queue.Release(2 * testMiB)
	require.NoError(t, queue.Reserve(1))
	for _, p := range all {
		p.Close()
	}
	require.NoError(t, queue.Reserve(testMiB))
}

func TestMemoryThatIsReservedAndReleasedRepeatedlyStaysWithTheProcess(t *testing.T) {
	b := New(16 * testMiB)
	b.free = func() { t.Error("memory went back though little was ever held") }
	p := leaver(b.Group("bytefrog"), "run")
	for range 1000 {
		require.NoError(t, p.Reserve(testMiB))
		p.Release(testMiB)
	}
	b.mu.Lock()
	assert.Nil(t, b.returning)
	b.mu.Unlock()
	p.Close()
	b.Stop()
}
