// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkit

import (
	"testing"

	"github.com/tinylib/msgp/msgp"

	"github.com/callbraid/callbraid/internal/testkit/cputime"
)

// BenchmarkDecode reads every captured message that has events of one kind or another,
// with every object, and its references.
func BenchmarkDecode(b *testing.B) {
	b.Run("objects", func(b *testing.B) { benchmarkDecode(b, ObjectCreated, ObjectDestroyed) })
	b.Run("dumps", func(b *testing.B) { benchmarkDecode(b, ObjectSpaceDump) })
}

// BenchmarkSkip only looks for the ends of the same messages with the msgp library, which has
// to go over all values for that.
func BenchmarkSkip(b *testing.B) {
	b.Run("objects", func(b *testing.B) { benchmarkSkip(b, ObjectCreated, ObjectDestroyed) })
	b.Run("dumps", func(b *testing.B) { benchmarkSkip(b, ObjectSpaceDump) })
}

func benchmarkSkip(b *testing.B, kinds ...Kind) {
	messages, _, size, events := messagesOf(b, kinds)
	cputime.Bytes(b, size, events, func() {
		for _, message := range messages {
			if rest, err := msgp.Skip(message); err != nil || len(rest) > 0 {
				b.Fatalf("expected one value, got %d bytes behind it, %v", len(rest), err)
			}
		}
	})
}

// messagesOf are the captured messages that mostly has events in, with the size of all of them
// in bytes.
func messagesOf(b *testing.B, kinds []Kind) (messages [][]byte, dialects []Dialect, size, events int) {
	b.Helper()
	eachMessage(b, func(_ string, message, _ []byte) {
		if n := mostly(b, message, kinds); n > 0 {
			dialect, _ := DialectOf(message)
			messages, dialects = append(messages, message), append(dialects, dialect)
			size += len(message)
			events += n
		}
	})
	return messages, dialects, size, events
}

func benchmarkDecode(b *testing.B, kinds ...Kind) {
	messages, dialects, size, events := messagesOf(b, kinds)
	var r Reader
	read, sum := 0, uint64(0)
	cputime.Bytes(b, size, events, func() {
		read = 0
		for i, message := range messages {
			if err := r.Open(dialects[i], message); err != nil {
				b.Fatal(err)
			}
			for r.Next() {
				e := r.Event()
				sum += e.Object.ID + uint64(len(e.Object.Class))
				if read++; e.Kind == DumpedObject {
					for id := range e.Object.References.All() {
						sum += id
					}
				}
			}
			if err := r.Err(); err != nil {
				b.Fatal(err)
			}
		}
	})
	if read != events || sum == 0 {
		b.Fatalf("expected %d events, got %d", events, read)
	}
}

// mostly is how many events a message has, objects of dumps included, if at least 9 of 10
// are of these kinds, or objects of one of them.
func mostly(tb testing.TB, message []byte, kinds []Kind) int {
	tb.Helper()
	dialect, err := DialectOf(message)
	if err != nil {
		tb.Fatal(err)
	}
	var r Reader
	if err := r.Open(dialect, message); err != nil {
		tb.Fatal(err)
	}
	all, of := 0, 0
	for r.Next() {
		all++
		for _, k := range kinds {
			if r.Event().Kind == k || k == ObjectSpaceDump && r.Event().Kind == DumpedObject {
				of++
			}
		}
	}
	if of*10 < all*9 {
		return 0
	}
	return all
}
