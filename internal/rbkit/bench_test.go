// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkit

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/cputime"
)

// counting is a Visitor that does as little as one can with an event.
type counting struct{ n uint64 }

func (c *counting) Message(Header)                                 {}
func (c *counting) ObjectCreated(_ int64, id uint64, class []byte) { c.n += id + uint64(len(class)) }
func (c *counting) ObjectDestroyed(_ int64, id uint64)             { c.n += id }
func (c *counting) GC(int64, Type)                                 { c.n++ }
func (c *counting) GCStats(int64, []Stat)                          { c.n++ }
func (c *counting) DumpPart(int64, DumpPart)                       { c.n++ }
func (c *counting) DumpObject(o *DumpedObject)                     { c.n += o.Size }
func (c *counting) CPUSample(_ int64, frames []Frame)              { c.n += uint64(len(frames)) }
func (c *counting) SnapshotBegin(int64)                            {}
func (c *counting) SnapshotStack(uint64, []Frame)                  { c.n++ }
func (c *counting) SnapshotAllocation(a *Allocation)               { c.n += a.Count }
func (c *counting) SnapshotEnd()                                   {}
func (c *counting) Unknown(int64, uint64)                          { c.n++ }

// BenchmarkDecode reads the captured messages that have nothing but object events, and
// those with a dump.
func BenchmarkDecode(b *testing.B) {
	of := func(name string, types ...uint64) [][]byte {
		var messages [][]byte
	next:
		for _, m := range openCapture(b, name).Messages {
			for t := range m.Events {
				wanted := false
				for _, w := range types {
					wanted = wanted || t == w
				}
				if !wanted {
					continue next
				}
			}
			messages = append(messages, m.Data)
		}
		return messages
	}
	for name, messages := range map[string][][]byte{
		"objects": of("released-30s", 0, 1, 4),
		"dumps":   dumpsAlone(b),
	} {
		b.Run(name, func(b *testing.B) { benchmarkDecode(b, messages) })
	}
}

// dumpsAlone are the captured dumps, without other events.
func dumpsAlone(b *testing.B) (messages [][]byte) {
	for name := range captures {
		for _, m := range openCapture(b, name).Messages {
			v := &dumps{}
			_, _ = NewDecoder(Limits{}).Decode(m.Data, v)
			if v.Events() > 0 {
				messages = append(messages, v.Append(nil))
			}
		}
	}
	return messages
}

// dumps writes nothing but dumps.
type dumps struct{ Collection }

func (*dumps) ObjectCreated(int64, uint64, []byte) {}
func (*dumps) ObjectDestroyed(int64, uint64)       {}
func (*dumps) GC(int64, Type)                      {}
func (*dumps) GCStats(int64, []Stat)               {}
func (*dumps) CPUSample(int64, []Frame)            {}
func (*dumps) SnapshotBegin(int64)                 {}
func (*dumps) SnapshotStack(uint64, []Frame)       {}
func (*dumps) SnapshotAllocation(*Allocation)      {}
func (*dumps) SnapshotEnd()                        {}

func benchmarkDecode(b *testing.B, messages [][]byte) {
	d, v, bytes := NewDecoder(Limits{}), &counting{}, 0
	for _, m := range messages {
		_, err := d.Decode(m, v)
		require.NoError(b, err)
		bytes += len(m)
	}
	cputime.Bytes(b, bytes, func() {
		for _, m := range messages {
			_, _ = d.Decode(m, v)
		}
	})
}
