// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package text

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
)

func TestACutTextIsACopyWithoutTheRest(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	short := Short(long)
	assert.Len(t, short, MaxShort)
	assert.NotSame(t, unsafe.StringData(long), unsafe.StringData(short))
}

func TestATextIsCutBetweenCharacters(t *testing.T) {
	assert.Equal(t, strings.Repeat("拒", MaxShort/3), Short(strings.Repeat("拒", MaxShort)))
	assert.Equal(t, "a\uFFFD", Short("a\xff"))
}
