// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mapped sets the name of the thread with the given count, and reports whether the names take it for another thread
// than before.
func mapped(t *testing.T, n *names, count int, name string) bool {
	t.Helper()
	_, reused, err := n.mapThread(uint16(count), int64(count), name)
	require.NoError(t, err)
	return reused
}

func TestANewNameOfAThreadIsNoReuse(t *testing.T) {
	for _, test := range []struct {
		name string
		// threads is the number of threads that have begun when the thread renamed gets another name.
		threads, renamed int
	}{
		{"when there is one thread", 1, 0},
		{"when half of the IDs are in use", 32_768, 5},
		{"when an ID is not in use yet", 65_535, 30_000},
		{"when all IDs are in use", 65_536, 30_000},
		{"when its ID was reused long ago", 70_000, 10},
		{"when it has just begun with a reused ID", 70_000, 69_999},
		{"when its ID will be reused long after", 70_000, 40_000},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := newNames(memoryOf(64 << 20))
			for count := range test.threads {
				checkNew(t, n, count)
			}
			for i := range 3 {
				assert.False(t, mapped(t, n, test.renamed, fmt.Sprint("renamed ", i)))
			}
			for count := test.threads; count < test.threads+1000; count++ {
				checkNew(t, n, count)
			}
		})
	}
}

// checkNew names a thread that has just begun.
func checkNew(t *testing.T, n *names, count int) {
	t.Helper()
	if reused := mapped(t, n, count, "new"); reused != (count >= threadIDs) {
		t.Errorf("thread %d: reuses an ID: %t", count, reused)
	}
}

// Messages of threads that begin together arrive in any order. Known threads get other names. The agent sends no
// message for some threads.
func TestEveryThreadThatReusesAnIDIsFound(t *testing.T) {
	seeds := uint64(6)
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 3))
		n := newNames(memoryOf(64 << 20))
		width, lost := 1+random.IntN(300), random.IntN(3)*1000
		const total = 3*threadIDs + 1000
		reuses, found, renames, wrong := 0, 0, 0, 0
		heard := make([]bool, total+width)
		for first := 0; first < total; first += width {
			order := random.Perm(width)
			for _, i := range order {
				count := first + i
				if lost > 0 && random.IntN(lost) == 0 {
					continue
				}
				heard[count] = true
				reused := mapped(t, n, count, "new")
				if count >= threadIDs {
					reuses++
					if reused {
						found++
					}
				} else if reused {
					t.Fatalf("seed %d: thread %d reuses no ID", seed, count)
				}
				// The ID is neither near the count nor far behind it.
				if known := first - width - 5000 - random.IntN(20_000); known > 0 && heard[known] && random.IntN(4) == 0 {
					renames++
					if mapped(t, n, known, "renamed") {
						wrong++
					}
				}
			}
		}
		assert.Zero(t, wrong, "seed %d: of %d other names", seed, renames)
		if lost == 0 {
			assert.Equal(t, reuses, found, "seed %d", seed)
		} else {
			// A thread with an unused ID is no reuse.
			assert.InDelta(t, reuses, found, float64(reuses)/100, "seed %d", seed)
		}
	}
}
