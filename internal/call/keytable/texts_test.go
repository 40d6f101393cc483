// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package keytable

import (
	"strings"
	"testing"
)

func TestTextsFindTheNumbersOfTextsByAddressAndTheirVariants(t *testing.T) {
	var texts TextsByAddress
	long := strings.Repeat("x", 10)
	texts.Put(long, 0, 1)
	texts.Put(long, 7, 2)
	texts.Put(long[:5], 0, 9) // begins where another one does: it stays without a number
	texts.Put(long[5:], 0, 3)
	for _, c := range []struct {
		name    string
		text    string
		variant uint8
		want    uint32 // 0: none
	}{
		{"a text", long, 0, 1},
		{"a variant", long, 7, 2},
		{"another variant", long, 8, 0},
		{"the begin of another text", long[:5], 0, 0},
		{"the end of another text", long[5:], 0, 3},
		{"an equal text at another place", strings.Clone(long), 0, 0},
	} {
		if got, ok := texts.Find(c.text, c.variant); got != c.want || ok != (c.want > 0) {
			t.Errorf("%s has number %d, %t; expected %d", c.name, got, ok, c.want)
		}
	}
}
