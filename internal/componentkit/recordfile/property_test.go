// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// After any failures and deaths of the process: each line of all files is whole, each accepted line
// is there once, and no line is there twice.
func TestLinesAreWholeAndThereOnceAfterAnyFailure(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { playFaults(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func playFaults(t *testing.T, random *rand.Rand) {
	path := filepath.Join(t.TempDir(), "lines.json")
	var b *bed
	begin := func() { b = opened(t, path, bounded(400, 10_000), func(s *Settings) { s.Sync = random.IntN(2) == 0 }) }
	kill := func() {
		b.faults.dead = true
		if b.handle != nil {
			require.NoError(t, b.drop()) // the kernel does that
		}
		begin()
	}
	begin()
	moved, accepted := []string{}, []int{}
	part := func(line []byte) int { return random.IntN(len(line) + 1) }
	for n := range 60 {
		line := numbered(n, random.IntN(90))
		switch random.IntN(12) {
		case 0: // killed while it writes
			b.faults.write = func(line []byte) int {
				b.faults.truncate = true
				return part(line)
			}
			require.Error(t, b.Append(line))
			kill()
			continue
		case 1: // killed between lines
			kill()
		case 2:
			require.NoError(t, b.Close())
			begin()
		case 3: // moved by another program, such as logrotate
			if to := fmt.Sprint(path, ".", n); !b.torn && os.Rename(path, to) == nil {
				moved = append(moved, to)
			}
		}
		// The caller tries a refused line again until it is accepted, or gives up.
		for range random.IntN(4) {
			b.faults = faults{truncate: random.IntN(2) == 0, sync: random.IntN(2) == 0}
			if random.IntN(4) > 0 {
				b.faults.write = part
			}
			if b.Append(line) == nil {
				accepted = append(accepted, n)
				line = nil
				break
			}
		}
		b.faults = faults{}
		if line != nil && random.IntN(4) > 0 {
			require.NoError(t, b.Append(line))
			accepted = append(accepted, n)
		}
	}
	require.NoError(t, b.Close())
	begin()
	files := append(moved, path)
	earlier, err := backups(path)
	require.NoError(t, err)
	for _, backup := range earlier {
		files = append(files, backup.path)
	}
	times := map[int]int{}
	for _, n := range numbersIn(t, files...) {
		times[n]++
		assert.Equal(t, 1, times[n], "line %d", n)
	}
	for _, n := range accepted {
		assert.Equal(t, 1, times[n], "accepted line %d", n)
	}
}
