// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package callsum

import (
	"math/rand/v2"
	"testing"
)

func TestATableFindsTheNumbersOfItsKeys(t *testing.T) {
	random, table, want := rand.New(rand.NewPCG(1, 1)), table{}, map[uint64]uint32{}
	for n := range uint32(5_000) {
		key := random.Uint64N(2_000) * (1 << (16 * (n % 4)))
		if got := table.find(key); got != want[key] {
			t.Fatalf("key %#x has number %d, expected %d", key, got, want[key])
		}
		if want[key] == 0 {
			want[key] = n + 1
			table.put(key, n+1)
		}
	}
	for key, number := range want {
		if got := table.find(key); got != number {
			t.Fatalf("key %#x has number %d, expected %d", key, got, number)
		}
	}
	if n := len(table.slots); 2*n < 3*len(want) || n > 4*len(want) {
		t.Errorf("%d slots for %d keys", n, len(want))
	}
}
