// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/call/storedtree"
	"github.com/callbraid/callbraid/internal/testkit"
)

func TestTreesAndWindowsSurviveARestart(t *testing.T) {
	b := newBed(t, newDisk())
	b.call("shop", "main;work", 3)
	b.restart()
	b.equal(map[string]int{"main;work": 3}, b.live("shop"), "the tree")
	b.equal(map[string]int{"main;work": 3}, b.at("shop", "2026-11-28T10Z"), "the hour")
	b.call("shop", "main;work", 4)
	b.equal(map[string]int{"main;work": 7}, b.live("shop"), "the tree")
	b.equal(map[string]int{"main;work": 7}, b.at("shop", "2026-11-28T10Z"), "the hour has all until now")
	b.equal(map[string]int{"main;work": 7}, b.at("shop", "2026-11-28Z"), "the day")
	b.now = b.now.Add(time.Hour)
	b.save()
	b.call("shop", "main", 1)
	b.restart()
	b.equal(map[string]int{"main;work": 7, "main": 1}, b.live("shop"), "the tree")
	b.equal(map[string]int{"main;work": 7}, b.at("shop", "2026-11-28T10Z"), "the hour before")
	b.equal(map[string]int{"main": 1}, b.at("shop", "2026-11-28T11Z"), "the hour")
	assert.Equal(t, []string{"2026-11-28Z", "2026-11-28T11Z", "2026-11-28T10Z"}, b.windows("shop"))
	assert.Equal(t, morning.Add(5*time.Minute), b.store.Services()[0].From.UTC())
	for _, line := range b.logged() {
		assert.Equal(t, "info: Call trees of the last collector are restored", line)
	}
	assert.Empty(t, b.dropped)
}

func TestYesterdayAtTenIsAWindow(t *testing.T) {
	b := newBed(t, newDisk())
	b.call("shop", "main", 5)
	b.now = b.now.Add(37 * time.Hour) // 23:05 of the next day
	b.save()
	b.restart()
	s, err := b.tree("shop", "2026-11-28T10Z")
	require.NoError(t, err)
	b.equal(map[string]int{"main": 5}, folded(s), "the hour")
	assert.Equal(t, "2026-11-28 10:00:00 +0000 UTC to 2026-11-28 11:00:00 +0000 UTC", fmt.Sprint(s.From, " to ", s.To))
	assert.Empty(t, s.Remarks)
}

func TestAKilledCollectorLosesTheCallsSinceItsLastSave(t *testing.T) {
	b := newBed(t, newDisk())
	b.call("shop", "main", 5)
	b.now = b.now.Add(time.Minute)
	b.save()
	b.call("shop", "main", 100)
	b.logged()
	b.open()
	assert.Equal(t, []string{
		"warn: The last collector ended without saving its call trees: calls since the last save are missing", "info: Call trees of the last collector are restored",
	}, b.logged())
	b.equal(map[string]int{"main": 5}, b.live("shop"), "the tree")
	s, err := b.tree("shop", "2026-11-28T10Z")
	require.NoError(t, err)
	b.equal(map[string]int{"main": 5}, folded(s), "the hour")
	want := []string{"The collector ended without its last save: calls that arrived after 2026-11-28 10:06:00 UTC are missing until it was started again."}
	assert.Equal(t, want, s.Remarks)

	b.call("shop", "main", 1)
	b.now = b.now.Add(time.Hour)
	b.restart()
	s, err = b.tree("shop", "2026-11-28T10Z")
	require.NoError(t, err)
	b.equal(map[string]int{"main": 6}, folded(s), "the hour")
	assert.Equal(t, want, s.Remarks, "it stays")
	s, err = b.tree("shop", "2026-11-28Z")
	require.NoError(t, err)
	assert.Equal(t, want, s.Remarks, "the day, too")
}

// The obvious way: a list of all calls that no kill lost. Collectors are restarted and killed, the disk is full at times, services are
// reset, and the clock goes forward and back. Each window has exactly its calls, and each tree all since its reset.
func TestEachCallIsInItsWindowOnce(t *testing.T) {
	type call struct {
		at            time.Time
		service, path string
		calls         int
		isReset       bool // it is no longer in the live tree
	}
	services, paths := []string{"shop", "pay"}, []string{"main", "main;work", "main;work;deep", "other"}
	kills, failures, days := 0, 0, 0
	seeds := uint64(60)
	if testing.Short() {
		seeds = 15
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 7))
		d := newDisk()
		b := newBed(t, d, func(b *bed) { b.settings.Hours = 5 + random.IntN(30); b.settings.Days = 3 + random.IntN(5) })
		var saved, unsaved []call
		// window is the hour in which the collector counts.
		window := b.now
		save := func(isSaved bool) {
			if isSaved && d.failure == nil {
				saved, unsaved = append(saved, unsaved...), nil
			}
			window = b.now
		}
		last := b.now
		for range 150 {
			switch what := random.IntN(100); {
			case what < 55:
				c := call{at: window, service: services[random.IntN(2)], path: paths[random.IntN(4)], calls: 1 + random.IntN(9)}
				b.call(c.service, c.path, c.calls)
				unsaved = append(unsaved, c)
			case what < 75:
				b.now = b.now.Add(time.Duration(random.IntN(90)) * time.Minute)
				b.save()
				save(true)
			case what < 77:
				if b.now = b.now.Add(-30 * time.Minute); b.now.Before(last.Add(-time.Hour)) {
					b.now = last
				}
				b.save()
				save(true)
			case what < 85:
				isFull := d.failure != nil
				b.restart()
				if save(true); isFull {
					unsaved = nil
				}
			case what < 90:
				unsaved = nil
				b.open()
				window = b.now
				kills++
			case what < 93:
				d.failure = errors.New("no space left on device")
				failures++
			case what < 97:
				d.failure = nil
			default:
				b.save()
				service := services[random.IntN(2)]
				b.store.Reset(service)
				save(true)
				b.save()
				if d.failure != nil {
					continue // a restart brings the tree back: see below
				}
				for i := range saved {
					if saved[i].service == service {
						saved[i].isReset = true
					}
				}
			}
			last = latest(last, b.now)
			if d.failure != nil || random.IntN(4) > 0 {
				continue
			}
			b.save()
			save(true)
			all := map[string]map[string]map[string]int{} // by service and window
			want := func(service, window string) map[string]int {
				if all[service] == nil {
					all[service] = map[string]map[string]int{}
				}
				if all[service][window] == nil {
					all[service][window] = map[string]int{}
				}
				return all[service][window]
			}
			for _, c := range saved {
				want(c.service, storedtree.HourOf(c.at).String())[c.path] += c.calls
				want(c.service, storedtree.DayOf(c.at).String())[c.path] += c.calls
			}
			for _, service := range services {
				for _, w := range b.Windows(service, calltree.Calls) {
					b.equal(all[service][w.String()], b.at(service, w.String()), "seed %d, %s at %s", seed, service, w)
					if w.Length == storedtree.Day && b.trees[treeKey{service, calltree.Calls}].dayOf(w) != nil {
						days++
					}
				}
				hours := 0
				for w := range all[service] {
					of, err := storedtree.ParseWindow(w)
					require.NoError(t, err)
					isKept := of.Length == storedtree.Day && !of.From().Before(storedtree.DayOf(last.AddDate(0, 0, -b.settings.Days)).From()) ||
						of.Length == storedtree.Hour && !of.From().Before(storedtree.HourOf(last.Add(-time.Duration(b.settings.Hours)*time.Hour)).From())
					if isKept {
						assert.Contains(t, b.windows(service), w, "seed %d", seed)
						hours++
					}
				}
			}
			require.False(t, t.Failed(), "seed %d", seed)
		}
	}
	assert.Greater(t, kills, int(seeds))
	assert.Greater(t, failures, int(seeds)/2)
	assert.Greater(t, days, int(seeds))
}

// Live trees have all calls since their reset, over restarts.
func TestALiveTreeHasAllCallsSinceItsReset(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 8))
		b := newBed(t, newDisk())
		want, saved := map[string]int{}, map[string]int{}
		for range 60 {
			switch random.IntN(6) {
			case 0, 1, 2:
				path := []string{"main", "main;work"}[random.IntN(2)]
				b.call("shop", path, 2)
				want[path] += 2
			case 3:
				b.now = b.now.Add(time.Duration(random.IntN(100)) * time.Minute)
				b.restart()
				saved = clone(want)
			case 4:
				b.open()
				want = clone(saved)
			case 5:
				b.store.Reset("shop")
				b.save()
				want, saved = map[string]int{}, map[string]int{}
			}
			b.equal(want, b.live("shop"), "seed %d", seed)
		}
	}
}

func clone(m map[string]int) map[string]int {
	c := map[string]int{}
	for k, v := range m {
		c[k] = v
	}
	return c
}

func TestHoursAndDaysAreKeptForTheirTime(t *testing.T) {
	d := newDisk()
	b := newBed(t, d, func(b *bed) { b.settings.Hours, b.settings.Days = 3, 2 })
	for range 24 * 5 {
		b.call("shop", "main", 1)
		b.now = b.now.Add(time.Hour)
		b.save()
	}
	// It is 10:05 of the third of December. The hours of the day stay until it has ended.
	b.call("shop", "main", 1)
	b.save()
	assert.Equal(t, []string{
		"2026-12-03Z", "2026-12-03T10Z", "2026-12-03T09Z", "2026-12-03T08Z", "2026-12-03T07Z", "2026-12-03T06Z", "2026-12-03T05Z", "2026-12-03T04Z",
		"2026-12-03T03Z", "2026-12-03T02Z", "2026-12-03T01Z", "2026-12-03T00Z", "2026-12-02Z", "2026-12-01Z",
	}, b.windows("shop"))
	b.equal(map[string]int{"main": 24}, b.at("shop", "2026-12-02Z"), "a day")
	assert.Len(t, d.trees(), 11+2+1, "all others are deleted")
	b.now = b.now.AddDate(0, 1, 0)
	b.save()
	assert.Empty(t, b.windows("shop"))
	_, err := b.tree("shop", "2026-12-02Z")
	assert.ErrorIs(t, err, ErrNotStored)
	assert.Empty(t, b.dropped)
	b.restart()
	b.equal(map[string]int{"main": 121}, b.live("shop"), "the tree")
}

// A service with many paths costs only its own windows.
func TestTheOldestWindowsOfTheLargestServiceGoBeyondTheBound(t *testing.T) {
	d := newDisk()
	b := newBed(t, d, func(b *bed) { b.settings.MaxBytes = 100 << 10 })
	random := rand.New(rand.NewPCG(1, 1))
	for range 24 {
		b.call("small", "main", 1)
		for range 300 {
			b.call("large", fmt.Sprint("f", random.Uint64()), 1)
		}
		b.now = b.now.Add(time.Hour)
		b.save()
		assert.LessOrEqual(t, b.Stored(), int64(100<<10))
		size := 0
		for _, key := range d.trees() {
			size += len(d.values[key])
		}
		assert.LessOrEqual(t, size, 100<<10)
	}
	assert.Len(t, b.windows("small"), 26)
	windows := b.windows("large")
	assert.Less(t, len(windows), 20)
	assert.Contains(t, windows, "2026-11-29T09Z")
	assert.Positive(t, b.dropped[ReasonLimit])
	assert.Equal(t, 1, count(b.logged(), "warn: Stored call trees reached history.max_mib"), "one line for a burst")
	b.restart()
	assert.Equal(t, windows, b.windows("large"))
}

func count(lines []string, begin string) (n int) {
	for _, line := range lines {
		if strings.HasPrefix(line, begin) {
			n++
		}
	}
	return n
}

func TestHoursWaitInMemoryWhileTheDiskIsFull(t *testing.T) {
	d := newDisk()
	b := newBed(t, d)
	b.call("shop", "main", 1)
	b.save()
	d.failure = storage.ErrStorageFull
	for range 30 {
		b.call("shop", "main", 2)
		b.now = b.now.Add(time.Hour)
		b.save()
	}
	lines := b.logged()
	assert.Equal(t, 1, count(lines, "error: Call trees cannot be stored"), lines)
	assert.Equal(t, []string{"Call trees cannot be stored: the storage extension has run out of available space. After a restart, those since the last save are missing."}, b.Notes())
	b.equal(map[string]int{"main": 3}, b.at("shop", "2026-11-28T10Z"), "the first hour")
	b.equal(map[string]int{"main": 2}, b.at("shop", "2026-11-28T13Z"), "another")
	b.equal(map[string]int{"main": 14*2 + 1}, b.at("shop", "2026-11-28Z"), "the day")
	assert.Positive(t, b.Memory())
	d.failure = nil
	b.save()
	assert.Equal(t, []string{"info: Call trees are stored again"}, b.logged())
	assert.Empty(t, b.Notes())
	b.save() // the day
	b.open()
	b.equal(map[string]int{"main": 3}, b.at("shop", "2026-11-28T10Z"), "the first hour")
	b.equal(map[string]int{"main": 14*2 + 1}, b.at("shop", "2026-11-28Z"), "the day")
	b.equal(map[string]int{"main": 61}, b.live("shop"), "the tree")
	assert.Empty(t, b.dropped)
}

func TestAFullDiskAtTheEndLosesTheCallsSinceTheLastSave(t *testing.T) {
	d := newDisk()
	b := newBed(t, d)
	b.call("shop", "main", 1)
	b.save()
	b.call("shop", "main", 2)
	b.now = b.now.Add(time.Hour)
	d.failure = errors.New("no space left on device")
	b.save()
	require.NoError(t, b.Close(t.Context()))
	assert.Equal(t, 1, b.dropped[ReasonRefused])
	d.failure = nil
	b.open()
	s, err := b.tree("shop", "2026-11-28T10Z")
	require.NoError(t, err)
	b.equal(map[string]int{"main": 1}, folded(s), "the hour")
	assert.Len(t, s.Remarks, 1)
}

func TestWaitingHoursAreBounded(t *testing.T) {
	d := newDisk()
	b := newBed(t, d, func(b *bed) { b.bounds.MaxNodes, b.bounds.MaxNamesBytes = 10_000_000, 1<<30 })
	d.failure = errors.New("no space left on device")
	random := rand.NewChaCha8([32]byte{})
	for range 12 {
		tree := calltree.Snapshot{Service: "large"}
		name := make([]byte, 4000)
		for range 1000 {
			_, _ = random.Read(name) // it never fails
			tree.Nodes = append(tree.Nodes, calltree.Node{Parent: -1, Function: string(name), Calls: 1})
		}
		b.now = b.now.Add(time.Hour)
		// As if it were the hour's.
		b.mu.Lock()
		b.put(b.of(treeKey{"large", calltree.Calls}), nil, storedtree.HourOf(b.now), tree)
		b.mu.Unlock()
		b.save()
		assert.LessOrEqual(t, b.Memory(), int64(maxWaiting+1<<20))
	}
	assert.Positive(t, b.dropped[ReasonRefused])
	assert.NotEmpty(t, b.windows("large"))
}

// Each entry can be torn, damaged, or gone. The others are shown. The page and the log name the missing ones.
func TestADamagedEntryCostsOnlyItself(t *testing.T) {
	for name, damage := range map[string]func(value []byte) []byte{
		"torn":    func(value []byte) []byte { return value[:len(value)/2] },
		"damaged": func(value []byte) []byte { value[len(value)/2] ^= 1; return value },
		"empty":   func([]byte) []byte { return []byte{} },
		"gone":    func([]byte) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDisk()
			b := newBed(t, d)
			b.call("shop", "main", 1)
			b.restart()
			b.call("shop", "main;work", 2)
			b.now = b.now.Add(time.Hour)
			b.restart()
			first := b.trees[treeKey{"shop", calltree.Calls}].partsOf(storedtree.HourOf(morning))[0]
			d.values[keyOf(first.Part)] = damage(d.values[keyOf(first.Part)])
			b.logged()
			for range 2 {
				s, err := b.tree("shop", "2026-11-28T10Z")
				require.NoError(t, err)
				b.equal(map[string]int{"main;work": 2}, folded(s), "the other part")
				require.Len(t, s.Remarks, 1)
				assert.Contains(t, s.Remarks[0], "A stored part of 2026-11-28T10Z cannot be read, and its calls are missing: ")
			}
			assert.Equal(t, []string{"warn: A stored window of a call tree cannot be read"}, b.logged(), "once")
			assert.Equal(t, map[Reason]int{ReasonUnreadable: 1}, b.dropped)
			b.equal(map[string]int{"main": 1, "main;work": 2}, b.live("shop"), "the tree")

			b.now = b.now.AddDate(0, 0, 1)
			b.save()
			s, err := b.tree("shop", "2026-11-28Z")
			require.NoError(t, err)
			b.equal(map[string]int{"main;work": 2}, folded(s), "the day")
			assert.Len(t, s.Remarks, 1)
		})
	}
}

func TestADamagedWindowIsAnErrorOfItsPageOnly(t *testing.T) {
	d := newDisk()
	b := newBed(t, d)
	b.call("shop", "main", 1)
	b.restart()
	for _, key := range d.trees() {
		d.values[key][10] ^= 1
	}
	b.open()
	lines := b.logged()
	assert.Equal(t, 1, count(lines, "warn: A stored call tree cannot be read: the tree begins again"), lines)
	_, err := b.tree("shop", "2026-11-28T10Z")
	assert.ErrorIs(t, err, ErrUnreadable)
	assert.ErrorContains(t, err, "2026-11-28T10Z: it is torn or damaged: expected the checksum")
	b.call("shop", "main", 2)
	b.equal(map[string]int{"main": 2}, b.at("shop", "2026-11-28T10Z"), "later calls")
	b.now = b.now.AddDate(0, 0, 2)
	b.restart()
	b.equal(map[string]int{"main": 2}, b.at("shop", "2026-11-28Z"), "later calls")
}

func TestTheStorageIsSearchedIfTheListIsDamaged(t *testing.T) {
	d := newDisk()
	b := newBed(t, searchable{d})
	b.call("shop", "main", 1)
	b.now = b.now.Add(time.Hour)
	b.restart()
	for _, damage := range []func(){
		func() { d.values[catalogKey][9] ^= 1 },
		func() { d.values[catalogKey][4] = 2 },
		func() { delete(d.values, catalogKey) },
	} {
		damage()
		b.open()
		b.equal(map[string]int{"main": 1}, b.at("shop", "2026-11-28T10Z"), "the hour")
		b.equal(map[string]int{"main": 1}, b.live("shop"), "the tree")
		b.save()
	}
	b.call("shop", "main", 1)
	b.save()
	b.equal(map[string]int{"main": 1}, b.at("shop", "2026-11-28T10Z"), "a part keeps its number")
}

func TestAStorageThatCannotBeSearchedBeginsAgainIfTheListIsDamaged(t *testing.T) {
	d := newDisk()
	b := newBed(t, d)
	b.call("shop", "main", 1)
	b.restart()
	d.values[catalogKey] = d.values[catalogKey][:7]
	b.open()
	assert.Nil(t, b.at("shop", "2026-11-28T10Z"))
	b.call("shop", "main", 2)
	b.restart()
	b.equal(map[string]int{"main": 2}, b.live("shop"), "the tree")
}

func TestEntriesOfANewerVersionStayInTheStorage(t *testing.T) {
	d := newDisk()
	b := newBed(t, searchable{d})
	d.values["tree.99"], d.values["tree.98"] = append([]byte("cbct"), storedtree.Version+1), []byte("torn")
	b.restart()
	assert.Equal(t, []string{"Call trees that another version of the collector stored, and that this one cannot show: 1."}, b.Notes())
	assert.Equal(t, 1, count(b.logged(), "warn: Call trees that another version of the collector stored are not shown"))
	assert.Equal(t, []string{"tree.99"}, d.trees(), "damaged ones go")
	b.call("shop", "main", 1)
	b.save()
	assert.ElementsMatch(t, []string{"tree.99", "tree.100", "tree.101"}, d.trees(), "no part gets its number")
	assert.Equal(t, map[Reason]int{ReasonUnreadable: 1}, b.dropped)
}

func TestAStorageThatCannotBeReadIsAnError(t *testing.T) {
	d := newDisk()
	b := newBed(t, d)
	d.unread = errors.New("input/output error")
	_, err := Open(t.Context(), d, b.store, b.settings)
	assert.EqualError(t, err, "read the list of call trees: input/output error")
	b.call("shop", "main", 1)
	b.now = b.now.Add(time.Hour)
	b.save()
	_, err = b.tree("shop", "2026-11-28T10Z")
	assert.ErrorContains(t, err, "the storage failed: input/output error")
	b.now = b.now.AddDate(0, 0, 1)
	b.save()
	assert.Equal(t, 1, count(b.logged(), "warn: The hours of a day cannot be summed up yet"))
	d.unread = nil
	b.save()
	b.equal(map[string]int{"main": 1}, b.at("shop", "2026-11-28Z"), "the day")
}

func TestWithoutMemoryAnHourHasItsLastSave(t *testing.T) {
	b := newBed(t, newDisk())
	b.call("shop", "main", 1)
	b.save()
	reserve := b.settings.Reserve
	b.History.settings.Reserve = func(int64) (func(), error) { return nil, errors.New("no room") }
	b.call("shop", "main", 2)
	b.save()
	b.now = b.now.Add(time.Hour)
	b.save()
	b.History.settings.Reserve = reserve
	b.call("shop", "main", 4)
	b.save()
	b.equal(map[string]int{"main": 1}, b.at("shop", "2026-11-28T10Z"), "the hour")
	b.equal(map[string]int{"main": 4}, b.at("shop", "2026-11-28T11Z"), "the next")
	assert.Equal(t, map[Reason]int{ReasonMemory: 1}, b.dropped)
	assert.Equal(t, 1, count(b.logged(), "warn: The memory budget has no room"))
}

// An evicted service keeps its windows, and its calls are in none of the other services.
func TestAnEvictedServiceKeepsItsWindows(t *testing.T) {
	b := newBed(t, newDisk(), func(b *bed) { b.bounds.MaxServices = 1 })
	b.call("weak", "main", 1)
	b.save()
	for range 5 {
		b.now = b.now.Add(time.Second)
		b.call("strong", "main", 10)
		b.store.Services()
	}
	b.save()
	require.EqualValues(t, 1, b.store.Counters().YieldedServices)
	b.equal(map[string]int{"main": 1}, b.at("weak", "2026-11-28T10Z"), "the evicted service")
	sum := 0
	for _, service := range b.Services() {
		for _, calls := range b.at(service, "2026-11-28T10Z") {
			sum += calls
		}
	}
	assert.Equal(t, 51, sum)
	assert.Contains(t, b.Services(), "weak")
	assert.Equal(t, []calltree.Kind{calltree.Calls}, b.Kinds("weak"))
	assert.Positive(t, b.Paths("weak", calltree.Calls, storedtree.HourOf(morning)))
	assert.False(t, slices.ContainsFunc(b.trees[treeKey{"weak", calltree.Calls}].entries, func(e *entry) bool { return e.Window.Length == storedtree.Live }))
}

func TestSamplesHaveWindows(t *testing.T) {
	b := newBed(t, newDisk())
	kind := calltree.Kind{Type: "cpu", Unit: "nanoseconds"}
	b.store.FoldSamples(calltree.Origin{Service: "shop"}, kind, calltree.Sample{Frames: []calltree.Frame{{Function: "main"}}, Count: 1, Value: 1000})
	b.restart()
	s, err := b.Tree(t.Context(), "shop", kind, storedtree.HourOf(morning))
	require.NoError(t, err)
	b.equal(map[string]int{"main": 1}, folded(s), "samples")
	assert.Equal(t, []calltree.Kind{kind}, b.Kinds("shop"))
}

func TestTheIntervalAndTheEndOfTheHourSave(t *testing.T) {
	b := newBed(t, newDisk())
	assert.Equal(t, time.Minute, b.untilNextSave())
	b.now = morning.Add(59*time.Minute + 50*time.Second)
	assert.Equal(t, 10*time.Second+time.Millisecond, b.untilNextSave())

	d := newDisk()
	b = newBed(t, d, func(b *bed) { b.settings.Interval = time.Millisecond })
	b.call("shop", "main", 1)
	b.Start()
	require.True(t, testkit.Happens(func() bool { d.mu.Lock(); defer d.mu.Unlock(); return len(d.trees()) == 2 }))
	require.NoError(t, b.Close(t.Context()))
	assert.Equal(t, 1, d.closed)
}

// Pages read while the collector saves.
func TestWindowsAreReadDuringSaves(t *testing.T) {
	b := newBed(t, newDisk(), func(b *bed) { b.settings.Interval = time.Millisecond })
	b.Start()
	for i := range 200 {
		b.call("shop", "main", 1)
		b.equal(map[string]int{"main": i + 1}, b.at("shop", "2026-11-28T10Z"), "the hour")
		b.Windows("shop", calltree.Calls)
		b.Services()
		b.Notes()
		if i%50 == 0 {
			b.Save(t.Context())
		}
	}
	require.NoError(t, b.Close(t.Context()))
}
