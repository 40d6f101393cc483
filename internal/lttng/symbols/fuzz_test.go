// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"bytes"
	"debug/elf"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// FuzzReadTable reads any bytes as an object file. There is no panic, the memory is bounded by the settings, and the
// functions are in order.
func FuzzReadTable(f *testing.F) {
	for _, class := range []elf.Class{elf.ELFCLASS32, elf.ELFCLASS64} {
		for _, data := range []elf.Data{elf.ELFDATA2LSB, elf.ELFDATA2MSB} {
			m := shop
			m.class, m.data = class, data
			f.Add(m.bytes(), shop.buildID, uint64(0x1104))
			m.typ, m.machine, m.symbols = elf.ET_EXEC, elf.EM_ARM, nil
			f.Add(m.bytes(), shop.buildID, uint64(0x1100))
		}
	}
	nested := image{symbols: []imageSymbol{{name: "a", start: 0x10, size: 0x100}, {name: "_ZN1bC1Ev", start: 0x20}, {name: "c", start: 0x20}}}
	f.Add(nested.bytes(), "", uint64(0x30))
	for _, section := range []elf.SectionIndex{imageCode, imageNote, imageSymtab, imageStrtab} {
		for _, field := range []int{sectionType, sectionFlags, sectionOffset, sectionSize, sectionLink} {
			f.Add(patched(section, field, 1<<31), shop.buildID, uint64(0x1100))
			f.Add(patched(section, field, uint64(elf.SHF_COMPRESSED)), shop.buildID, uint64(0x1100))
		}
	}
	for _, c := range lineSections() {
		f.Add(shopImage("pay").withSections(c.section), shopBuildID, uint64(0x1100))
	}
	f.Add(longPathShop(1000), shopBuildID, uint64(0x1100))
	settings := DefaultSettings()
	settings.MaxLineBytes = 1 << 20
	settings.MaxTableBytes = 1 << 20
	settings.MaxSymbols = 1 << 16
	f.Fuzz(func(t *testing.T, data []byte, buildID string, addr uint64) {
		table, err := readTable(bytes.NewReader(data), int64(len(data)), identity{buildID: buildID, memorySize: 0x1000}, settings, unchecked)
		if err != nil {
			// A panic of this package would otherwise become an error.
			require.NotContains(t, err.Error(), "reading the ELF file failed")
			return
		}
		require.NotEmpty(t, table.symbols)
		require.LessOrEqual(t, table.bytes(), settings.MaxTableBytes)
		for i, s := range table.symbols {
			require.NotZero(t, s.size)
			require.NotEmpty(t, nameAt(table.names, s.name))
			if i > 0 {
				require.Less(t, table.symbols[i-1].start, s.start)
			}
			require.NotNil(t, table.function(s.start))
		}
		for i := range table.symbols {
			file, line, reason := table.lines.at(i)
			require.Equal(t, line > 0, file != "" && reason == "")
		}
		table.function(addr)
		table.function(table.fileAddress(addr, addr+100))
	})
}

// FuzzDemangled demangles any symbol. There is no panic or long delay. The names are bounded, valid UTF-8, and not
// empty for a symbol that is not empty.
func FuzzDemangled(f *testing.F) {
	for _, symbol := range []string{
		"main", "_ZNK4shop3BoxISt6vectorIiSaIiEEE2asIiEET_S5_", "_ZZN4shop5OrderclEiENKUliE_clEi", "_ZThn8_N4shop5Order1vEi",
		"_ZN53_$LT$shop..Order$u20$as$u20$core..ops..drop..Drop$GT$4drop17h0123456789abcdefE", "_RINvNtCs1234_4shop5order3paylE",
		"_RNvXNtCs1234_4shop5orderNtB2_5OrderNtB2_5Payer3pay", "_GLOBAL__sub_I_main", "_ZN4shop12_GLOBAL__N_11gEv.isra.0", "read@@GLIBC_2.2.5",
		"___ZN4shop3payEv_block_invoke", "__alloc_token_7__Znwm", "\xff.cold", "_Z1fIXszspT_EEvDpT_", doubling(20),
		"_R" + strings.Repeat("T", 100),
	} {
		f.Add(symbol)
	}
	f.Fuzz(func(t *testing.T, symbol string) {
		n := demangled(symbol)
		for _, s := range []string{n.qualified, n.display} {
			require.LessOrEqual(t, len(s), MaxNameBytes)
			require.True(t, utf8.ValidString(s))
		}
		if before, _, _ := strings.Cut(symbol, "@"); before != "" {
			require.NotEmpty(t, n.qualified)
			require.NotEmpty(t, n.display)
		}
		require.Equal(t, n, demangled(symbol), "names are always the same")
	})
}
