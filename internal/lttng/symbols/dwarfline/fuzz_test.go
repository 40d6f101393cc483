// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package dwarfline

import (
	"encoding/binary"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// FuzzRead reads any sections. There is no panic, the kept paths are bounded, and each place is complete.
func FuzzRead(f *testing.F) {
	texts := []byte("x\x00/src\x00")
	for version := uint16(2); version <= 6; version++ {
		for _, is64 := range []bool{false, true} {
			for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
				line := lineTable{version: version, is64: is64, order: order}.bytes()
				info, abbrev := debugInfo(version, is64, []uint64{atCompDir, formStrp, atStmtList, formSecOffset}, func(w *writer) { w.offset(2); w.offset(0) })
				f.Add(line, texts, info[:64], abbrev, order == binary.BigEndian, uint64(0x1000))
			}
		}
	}
	strp := lineTable{lists: func(w *writer) {
		for range 2 {
			w.u8(2)
			w.uleb(lnctPath, formLineStrp, lnctDirectoryIndex, formData1, 2)
			w.offset(2)
			w.u8(0)
			w.offset(0)
			w.u8(1)
		}
	}}
	f.Add(strp.bytes(), texts, []byte{}, []byte{}, false, uint64(0x1000))
	const limit = 1 << 16
	f.Fuzz(func(t *testing.T, line, texts, info, abbrev []byte, isBig bool, start uint64) {
		for _, open := range []func([]byte) Section{section, inflated} {
			s := Sections{Line: open(line), Str: open(texts), LineStr: open(texts), Info: open(info), Abbrev: open(abbrev), Order: binary.LittleEndian, AddressSize: 8}
			if isBig {
				s.Order, s.AddressSize = binary.BigEndian, 4
			}
			starts := []uint64{start, start | 1<<63}
			if start >= 1<<63 {
				starts = starts[:1]
			}
			places, _ := Read(s, starts, Limits{MaxBytes: limit})
			require.Len(t, places.Of, len(starts))
			kept := 0
			for _, path := range places.Files {
				require.NotEmpty(t, path)
				require.True(t, utf8.ValidString(path))
				kept += len(path)
			}
			require.LessOrEqual(t, kept, limit/keptCost)
			for _, p := range places.Of {
				require.Equal(t, p.Line == 0, p.File == 0 || p.IsAmbiguous())
				if p.IsAmbiguous() {
					continue
				}
				require.LessOrEqual(t, int(p.File), len(places.Files))
			}
		}
	})
}
