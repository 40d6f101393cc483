// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

func TestNamesOfSymbols(t *testing.T) {
	for _, c := range []struct{ name, symbol, qualified, display string }{
		{"a C function is its own name", "fact", "fact", "fact"},
		{"a C++ function loses its parameters", "_ZN4shop5Order3payEi", "shop::Order::pay", "Order::pay"},
		{"a C++ function loses its cv-qualifiers", "_ZNK4shop5Order3payEi", "shop::Order::pay", "Order::pay"},
		{"a function of a namespace", "_ZN4shop3payEv", "shop::pay", "shop::pay"},
		{"a function of no namespace", "_Z3payPFiiE", "pay", "pay"},
		{"a constructor", "_ZN4shop5OrderC2Ev", "shop::Order::Order", "Order::Order"},
		{"a destructor", "_ZN4shop5OrderD1Ev", "shop::Order::~Order", "Order::~Order"},
		{"template arguments stay in the qualified name, the return type is removed", "_ZN4shop4mostIdEET_S1_S1_", "shop::most<double>", "shop::most"},
		{"template arguments of a class", "_ZNK4shop3BoxISt6vectorIiSaIiEEE2asIiEET_S5_",
			"shop::Box<std::vector<int, std::allocator<int> > >::as<int>", "Box::as"},
		{"an operator of brackets", "_ZNK4shop5OrderltERKS0_", "shop::Order::operator<", "Order::operator<"},
		{"the arrow", "_ZN4shop5OrderptEv", "shop::Order::operator->", "Order::operator->"},
		{"the shift operator", "_ZN4shop5OrderlsEi", "shop::Order::operator<<", "Order::operator<<"},
		{"the call operator of a class", "_ZN4shop5OrderclEi", "shop::Order::operator()", "Order::operator()"},
		{"the index operator", "_ZN4shop5OrderixEi", "shop::Order::operator[]", "Order::operator[]"},
		{"a conversion", "_ZNK4shop5OrdercvNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEEv",
			"shop::Order::operator std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >",
			"Order::operator std::__cxx11::basic_string"},
		{"operator new", "_ZN4shop5OrdernwEm", "shop::Order::operator new", "Order::operator new"},
		{"a lambda in a method", "_ZZN4shop5OrderclEiENKUliE_clEi",
			"shop::Order::operator()::{lambda(int)#1}::operator()", "Order::operator()::{lambda(int)#1}::operator()"},
		{"a lambda in a const method", "_ZZNK4shop5Order3payEiENKUlvE_clEv",
			"shop::Order::pay::{lambda()#1}::operator()", "Order::pay::{lambda()#1}::operator()"},
		{"a lambda in a function", "_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()", "main::{lambda()#1}::operator()"},
		{"a class in a function", "_ZZN4shopL5localEiEN2In2goEi", "shop::local::In::go", "In::go"},
		{"a namespace without a name", "_ZN4shop12_GLOBAL__N_16Hidden1fEv", "shop::(anonymous namespace)::Hidden::f", "Hidden::f"},
		{"a function in a namespace without a name", "_ZN4shop12_GLOBAL__N_11gEv", "shop::(anonymous namespace)::g", "shop::g"},
		{"ABI tags are removed", "_ZN4shop3tagB5cxx11Ev", "shop::tag", "shop::tag"},
		{"a compiler's clone of C++", "_ZN4shop3payEv.isra.0.cold", "shop::pay", "shop::pay"},
		{"a compiler's clone of C", "fact.constprop.0", "fact", "fact"},
		{"a cold part", "fact.part.3.cold", "fact", "fact"},
		{"other dots stay", "main.(*Order).Pay", "main.(*Order).Pay", "main.(*Order).Pay"},
		{"a name of nothing but a suffix stays", ".cold", ".cold", ".cold"},
		{"a version is removed", "read@@GLIBC_2.2.5", "read", "read"},
		{"a thunk has the name of its target", "_ZThn8_N4shop5Order1vEi", "shop::Order::v", "Order::v"},
		{"a virtual thunk", "_ZTv0_n24_N4shop5Order1vEi", "shop::Order::v", "Order::v"},
		{"a method of a Rust type with generics", "_RNvMNtCs1234_4shop5orderINtB2_3BoxlE3pay", "<shop::order::Box<i32>>::pay", "Box::pay"},
		{"Rust's older mangling loses its hash", "_ZN4shop5order3pay17h0123456789abcdefE", "shop::order::pay", "order::pay"},
		{"a Rust implementation of a trait", "_ZN53_$LT$shop..Order$u20$as$u20$core..ops..drop..Drop$GT$4drop17h0123456789abcdefE",
			"<shop::Order as core::ops::drop::Drop>::drop", "Order::drop"},
		{"a Rust closure", "_ZN4shop5order3pay28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE",
			"shop::order::pay::{{closure}}", "order::pay::{{closure}}"},
		{"Rust's newer mangling", "_RNvNtCs1234_4shop5order3pay", "shop::order::pay", "order::pay"},
		{"Rust's newer mangling, with generics", "_RINvNtCs1234_4shop5order3paylE", "shop::order::pay::<i32>", "order::pay"},
		{"Rust's newer mangling of methods", "_RNvMNtCs1234_4shop5orderNtB2_5Order3pay", "<shop::order::Order>::pay", "Order::pay"},
		{"Rust's newer mangling of implementations of a trait", "_RNvXNtCs1234_4shop5orderNtB2_5OrderNtB2_5Payer3pay",
			"<shop::order::Order as shop::order::Payer>::pay", "Order::pay"},
		{"a name that only looks mangled stays", "_ZNotReally", "_ZNotReally", "_ZNotReally"},
		{"bytes that are no UTF-8", "a\xffb", "a?b", "a?b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, name{c.qualified, c.display}, demangled(c.symbol))
		})
	}
}

func TestLongNamesAreTruncated(t *testing.T) {
	for text, symbol := range map[string]string{
		"plain":                         strings.Repeat("x", 3*MaxNameBytes),
		"in the middle of a character":  strings.Repeat("é", MaxNameBytes),
		"mangled":                       "_Z" + strings.Repeat("1x", 2*MaxNameBytes),
		"that grow by being demangled":  "_Z1fI" + strings.Repeat("St6vectorI", 300) + "i" + strings.Repeat("E", 301) + "vv",
		"that double with each letter":  doubling(40),
		"that are a bracket too deep":   "_Z1fI" + strings.Repeat("N1aI", 1000),
		"of an expression without end":  "_Z1fIX" + strings.Repeat("pl", 3000),
		"of Rust that double each time": "_RIC1a" + strings.Repeat("TB2_B2_", 500) + "E",
	} {
		t.Run(text, func(t *testing.T) {
			f := namedFunction(symbol, "/x", 0, 0)
			for _, s := range []string{f.Qualified, f.Display, f.Text} {
				assert.LessOrEqual(t, len(s), MaxNameBytes)
				assert.True(t, utf8.ValidString(s))
				assert.NotEmpty(t, s)
			}
		})
	}
}

// doubling returns a mangled name in which each substitution contains the previous one twice. Without a bound, its
// demangled form has 2^n parts.
func doubling(n int) string {
	var b strings.Builder
	b.WriteString("_Z1f1aIiE")
	digits := "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	previous := "S_"
	for i := range n {
		b.WriteString("1aI" + previous + previous + "E")
		previous = "S" + digits[i%36:i%36+1] + "_"
	}
	return b.String()
}

func TestAddressesWithoutAFunction(t *testing.T) {
	assert.Equal(t, &Function{Qualified: "cyg+0x11c9", Display: "cyg+0x11c9", Text: "cyg+0x11c9", Object: "/opt/cyg", Offset: 0x11c9},
		unnamedFunction("/opt/cyg", 0x11c9))
	assert.Equal(t, &Function{Qualified: "[vdso]+0x1", Display: "[vdso]+0x1", Text: "[vdso]+0x1", Object: "[vdso]", Offset: 1},
		unnamedFunction("[vdso]", 1))
	assert.Equal(t, &Function{Qualified: "0xffffffffffffffff", Display: "0xffffffffffffffff", Text: "0xffffffffffffffff", Offset: 1<<64 - 1},
		bareAddress(1<<64-1))
}
