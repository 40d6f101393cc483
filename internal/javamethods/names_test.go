// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package javamethods

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNamesAreInternedOnce(t *testing.T) {
	var n Names
	first := n.Intern([]byte("com.example.Shop"))
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		if n.Intern([]byte("com.example.Shop")) != first {
			t.Error("the second string is another copy")
		}
	}))
	long := strings.Repeat("x", maxNameBytes+1)
	assert.Equal(t, long, n.Intern([]byte(long)))
	assert.Equal(t, "a\ufffd", n.Intern([]byte("a\xff")))
	assert.Len(t, n.byText, 1, "long and invalid names are not interned")
	most := 0
	for i := range 500_000 {
		n.Intern([]byte{'a' + byte(i%16), 'a' + byte(i>>4%16), 'a' + byte(i>>8%16), 'a' + byte(i>>12%16), 'a' + byte(i>>16%16)})
		most = max(most, n.bytes)
	}
	assert.LessOrEqual(t, most, maxNamesBytes+maxNameBytes+bytesOfName)
	assert.Greater(t, most, maxNamesBytes)
	assert.LessOrEqual(t, len(n.byText), maxNamesBytes/bytesOfName+1)
}
