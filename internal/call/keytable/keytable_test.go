// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package keytable

import (
	"math/rand/v2"
	"testing"
)

func TestATableFindsTheNumbersOfItsKeys(t *testing.T) {
	random, table, want := rand.New(rand.NewPCG(1, 1)), Table{}, map[uint64]uint32{}
	for n := range uint32(5_000) {
		key := random.Uint64N(2_000) * (1 << (16 * (n % 4)))
		if got := table.Find(key); got != want[key] {
			t.Fatalf("key %#x has number %d, expected %d", key, got, want[key])
		}
		if want[key] == 0 {
			want[key] = n + 1
			table.Put(key, n+1)
		}
	}
	for key, number := range want {
		if got := table.Find(key); got != number {
			t.Fatalf("key %#x has number %d, expected %d", key, got, number)
		}
	}
	if n := len(table.slots); 2*n < 3*len(want) || n > 4*len(want) {
		t.Errorf("%d slots for %d keys", n, len(want))
	}
}

func TestATableDoesNotGrowWithinItsReserve(t *testing.T) {
	var table Table
	table.Put(1, 1)
	table.Reserve(1_000)
	reserved := table.Bytes()
	for key := uint64(2); key <= 1_000; key++ {
		table.Put(key, uint32(key))
	}
	if table.Bytes() != reserved {
		t.Errorf("expected %d bytes as reserved, got %d", reserved, table.Bytes())
	}
	for key := uint64(1); key <= 1_000; key++ {
		if got := table.Find(key); got != uint32(key) {
			t.Fatalf("key %d has number %d", key, got)
		}
	}
	if table.Len() != 1_000 {
		t.Errorf("expected 1000 keys, got %d", table.Len())
	}
}
