// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/call/storedtree"
)

const versionByte = len("cbct")

// downgrade makes all stored trees those of a newer version, and returns their keys. The list stays readable.
func (d *disk) downgrade() []string {
	keys := d.trees()
	for _, key := range keys {
		d.values[key][versionByte] = storedtree.Version + 1
	}
	slices.Sort(keys)
	return keys
}

// upgrade makes this version the newer one.
func (d *disk) upgrade(keys []string) {
	for _, key := range keys {
		d.values[key][versionByte] = storedtree.Version
	}
}

// forgetful is a storage that fails to return trees.
type forgetful struct {
	*disk
	failure error
}

func (f *forgetful) Get(ctx context.Context, key string) ([]byte, error) {
	if f.failure != nil && key != catalogKey {
		return nil, f.failure
	}
	return f.disk.Get(ctx, key)
}

// stored are storages that can be searched, and that cannot.
var stored = map[string]func(*disk) storage.Client{
	"a storage that can be searched":    func(d *disk) storage.Client { return searchable{d} },
	"a storage that cannot be searched": func(d *disk) storage.Client { return d },
}

// A newer version stores trees, then this version runs for four days, and then the newer one again.
func TestListedTreesOfANewerVersionSurviveADowngrade(t *testing.T) {
	for name, client := range stored {
		t.Run(name, func(t *testing.T) {
			d := newDisk()
			b := newBed(t, client(d), func(b *bed) { b.settings.Hours = 3 })
			b.call("shop", "main", 1)
			b.now = b.now.Add(time.Hour)
			b.save()
			b.call("gone", "main", 7)
			require.NoError(t, b.Close(t.Context()))
			newer := d.downgrade()
			require.Len(t, newer, 4)
			before := map[string][]byte{}
			for _, key := range newer {
				before[key] = slices.Clone(d.values[key])
			}
			b.logged()

			b.open()
			assert.Empty(t, b.live("shop"), "the tree begins again")
			assert.Regexp(t, `^\[Call trees that another version of the collector stored, and that this one cannot show: [24]\.\]$`, fmt.Sprint(b.Notes()))
			assert.Equal(t, []string{"warn: Call trees that another version of the collector stored are not shown; they stay in the storage"}, b.logged())
			b.call("shop", "main", 20)
			b.save()
			_, err := b.tree("gone", "2026-11-28T11Z")
			require.ErrorIs(t, err, ErrUnreadable)
			assert.ErrorContains(t, err, fmt.Sprintf("another version of the collector stored it: expected a format up to %d, got %d", storedtree.Version, storedtree.Version+1))
			for range 4 * 24 {
				b.now = b.now.Add(time.Hour)
				b.save() // it sums up days, and drops old windows
			}
			assert.Equal(t, []string{"Call trees that another version of the collector stored, and that this one cannot show: 4."}, b.Notes())
			for range 2 {
				b.restart()
				b.save()
			}
			for _, key := range newer {
				assert.Equal(t, before[key], d.values[key], key)
			}
			assert.Empty(t, b.dropped)
			require.NoError(t, b.Close(t.Context()))

			d.upgrade(newer)
			b.open()
			for range 2 {
				b.equal(map[string]int{"main": 21}, b.live("shop"), "the tree")
				b.equal(map[string]int{"main": 7}, b.live("gone"), "the other tree")
				b.equal(map[string]int{"main": 21}, b.at("shop", "2026-11-28Z"), "the day")
				b.equal(map[string]int{"main": 7}, b.at("gone", "2026-11-28Z"), "the day")
				b.save()
				b.save()
				b.restart()
			}
			assert.Empty(t, b.Notes())
			assert.Len(t, d.trees(), 4, "a tree and a day of each service")
		})
	}
}

// A list of a newer version is replaced only if the storage can be searched for the trees.
func TestAListOfANewerVersionLosesNoTrees(t *testing.T) {
	d := newDisk()
	b := newBed(t, d)
	b.call("shop", "main", 1)
	require.NoError(t, b.Close(t.Context()))
	d.values[catalogKey][versionByte] = 99
	before := maps.Clone(d.values)
	_, err := Open(t.Context(), d, calltree.NewStore(b.bounds), b.settings)
	require.ErrorAs(t, err, new(storedtree.VersionError))
	assert.ErrorContains(t, err, "read the list of call trees: another version of the collector stored it")
	assert.Equal(t, before, d.values)

	b.client = searchable{d}
	b.open()
	b.save()
	b.equal(map[string]int{"main": 1}, b.live("shop"), "the tree")
}

// The storage fails once, at the start.
func TestAReadErrorAtTheStartKeepsTheTree(t *testing.T) {
	d := &forgetful{disk: newDisk()}
	b := newBed(t, d)
	b.call("shop", "main", 1)
	b.call("idle", "main", 5)
	require.NoError(t, b.Close(t.Context()))
	b.logged()
	d.failure = errors.New("input/output error")
	b.open()
	assert.Equal(t, []string{"warn: The storage did not return some call trees: they begin again, and the next start reads them once more"}, b.logged())
	assert.Equal(t, []string{"Call trees that the storage did not return at the start, and that are not shown: 2. The next start reads them once more."}, b.Notes())
	b.call("shop", "main", 20)
	b.save()
	d.failure = nil
	b.call("shop", "main", 300)
	b.now = b.now.Add(time.Hour)
	b.save()
	assert.Empty(t, b.dropped)
	for range 3 {
		b.restart()
		b.equal(map[string]int{"main": 321}, b.live("shop"), "the tree")
		b.equal(map[string]int{"main": 5}, b.live("idle"), "a tree without later calls")
		b.equal(map[string]int{"main": 321}, b.at("shop", "2026-11-28T10Z"), "the hour")
		assert.Empty(t, b.Notes())
	}
	assert.Equal(t, 2, live(b), "the parts of a tree became one")
}

// live is the number of stored live trees.
func live(b *bed) (n int) {
	for _, t := range b.trees {
		n += len(t.liveEntries())
	}
	return n
}

// The parts of a tree stay until their sum is stored.
func TestPartsOfATreeStayUntilTheirSumIsStored(t *testing.T) {
	d := &forgetful{disk: newDisk()}
	b := newBed(t, d)
	b.call("shop", "main", 1)
	require.NoError(t, b.Close(t.Context()))
	d.failure = errors.New("input/output error")
	b.open()
	b.call("shop", "main", 20)
	require.NoError(t, b.Close(t.Context()))
	d.failure = nil

	b.open()
	d.disk.failure = errors.New("no space left on device")
	b.save()
	d.disk.failure = nil
	reserve := b.settings.Reserve
	b.History.settings.Reserve = func(int64) (func(), error) { return nil, errors.New("no room") }
	b.save()
	b.settings.Reserve = reserve
	b.open() // it was killed
	b.equal(map[string]int{"main": 21}, b.live("shop"), "the tree")
	b.save()
	assert.Equal(t, 1, live(b))
	b.open()
	b.equal(map[string]int{"main": 21}, b.live("shop"), "the tree")
}

// A person who resets a service does not get its calls back by an upgrade.
func TestAResetIsForTreesOfANewerVersionToo(t *testing.T) {
	d := newDisk()
	b := newBed(t, searchable{d})
	b.call("shop", "main", 1)
	b.call("other", "main", 2)
	require.NoError(t, b.Close(t.Context()))
	newer := d.downgrade()
	b.open()
	b.call("shop", "main", 20)
	b.save()
	b.ForgetUnrestored(func(service string) bool { return service == "shop" })
	b.store.Reset("shop")
	require.NoError(t, b.Close(t.Context()))
	newer = slices.DeleteFunc(newer, func(key string) bool { return d.values[key] == nil })
	require.Len(t, newer, 3, "an hour of each, and the other tree")
	d.upgrade(newer)
	b.open()
	b.equal(nil, b.live("shop"), "the tree")
	b.equal(map[string]int{"main": 2}, b.live("other"), "the other tree")
	b.equal(map[string]int{"main": 21}, b.at("shop", "2026-11-28T10Z"), "the hour")
}

// Trees of a newer version are within the bound, too. A whole tree goes after the hours.
func TestTreesOfANewerVersionAreWithinTheBound(t *testing.T) {
	d := newDisk()
	b := newBed(t, searchable{d}, func(b *bed) { b.settings.MaxBytes = 40 << 10 })
	random := rand.New(rand.NewPCG(1, 1))
	names := func() {
		for range 150 {
			b.call("large", fmt.Sprint("f", random.Uint64()), 1)
		}
	}
	names()
	require.NoError(t, b.Close(t.Context()))
	whole := keyOf(b.trees[treeKey{"large", calltree.Calls}].live.Part)
	d.downgrade()
	b.open()
	for range 20 {
		names()
		b.now = b.now.Add(time.Hour)
		b.save()
		require.LessOrEqual(t, b.Stored(), int64(40<<10))
	}
	assert.Positive(t, b.dropped[ReasonLimit])
	assert.NotContains(t, b.windows("large"), "2026-11-28T10Z")
	assert.Contains(t, d.trees(), whole)
}

// The obvious way: all calls. Collectors are restarted in this version and in another, and the storage fails at starts.
func TestNoVersionAndNoReadErrorLosesCalls(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 9))
		d := &forgetful{disk: newDisk()}
		b := newBed(t, d)
		tree, windows := map[string]int{}, map[string]map[string]int{}
		var newer []string
		for range 60 {
			switch random.IntN(6) {
			case 0, 1, 2:
				path := []string{"main", "main;work"}[random.IntN(2)]
				b.call("shop", path, 2)
				tree[path] += 2
				for _, w := range []storedtree.Window{storedtree.HourOf(b.now), storedtree.DayOf(b.now)} {
					if windows[w.String()] == nil {
						windows[w.String()] = map[string]int{}
					}
					windows[w.String()][path] += 2
				}
			case 3:
				b.now = b.now.Add(time.Duration(random.IntN(300)) * time.Minute)
				b.save()
			case 4:
				require.NoError(t, b.Close(t.Context()))
				if newer == nil {
					newer = d.downgrade()
				} else {
					d.upgrade(newer)
					newer = nil
				}
				b.open()
			case 5:
				if random.IntN(2) == 0 {
					require.NoError(t, b.Close(t.Context()))
					d.failure = errors.New("input/output error")
					b.open()
					d.failure = nil
				} else {
					b.restart()
				}
			}
		}
		require.NoError(t, b.Close(t.Context()))
		d.upgrade(newer)
		b.open()
		b.equal(tree, b.live("shop"), "seed %d", seed)
		for w, want := range windows {
			b.equal(want, b.at("shop", w), "seed %d, %s", seed, w)
		}
		require.Empty(t, b.dropped, "seed %d", seed)
		require.False(t, t.Failed(), "seed %d", seed)
	}
}
