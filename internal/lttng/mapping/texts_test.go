// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRepeatedTextsAreMadeOnce(t *testing.T) {
	known := NewTexts()
	text, class, name := []byte("worker-1"), []byte("com.example.Shop"), []byte("buy")
	assert.Equal(t, "worker-1", known.text(text, Text{}))
	assert.Equal(t, "com.example.Shop.buy", known.method(class, name, Text{}))
	assert.Equal(t, "buy", known.method(nil, name, Text{}))
	assert.Zero(t, testing.AllocsPerRun(100, func() { known.text(text, Text{}) }))
	known.method(class, name, Text{})
	assert.Zero(t, testing.AllocsPerRun(100, func() { known.method(class, name, Text{}) }))
}

func TestManyTextsAreUnchanged(t *testing.T) {
	known := NewTexts()
	for range 2 {
		for i := range 5 * knownTexts {
			text := fmt.Sprint("text ", i)
			assert.Equal(t, text, known.text([]byte(text), Text{}))
		}
	}
	assert.Empty(t, known.text(nil, Text{}))
	for range 2 {
		assert.Equal(t, "a\uFFFDb", known.text([]byte("a\xFFb"), Text{}))
	}
}

func TestLongTextsAreNotStored(t *testing.T) {
	known := NewTexts()
	for _, length := range []int{longestKnown, longestKnown + 1} {
		text := strings.Repeat("x", length)
		assert.Equal(t, text, known.text([]byte(text), Text{}))
	}
	remembered := 0
	for _, text := range known.known {
		remembered += len(text)
	}
	assert.Equal(t, longestKnown, remembered)
}
