// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
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
		remembered += len(text.text)
	}
	assert.Equal(t, longestKnown, remembered)
}

func TestAttributesOfTheSameTextOrNumberShareIt(t *testing.T) {
	known, attributes := NewTexts(), pcommon.NewMap()
	text := []byte("worker-1")
	attributes.EnsureCapacity(3)
	put := func() {
		known.putText(attributes, "text", text, Text{})
		known.putString(attributes, "string", "worker-1")
		known.putNumber(attributes, "number", 4711)
	}
	put()
	assert.Zero(t, testing.AllocsPerRun(100, put))
	assert.Equal(t, map[string]any{"text": "worker-1", "string": "worker-1", "number": int64(4711)}, attributes.AsRaw())
}

// Numbers and texts that share a place in the tables, or that are stored nowhere, are never confused.
func TestManyAttributesHaveTheirOwnValues(t *testing.T) {
	known := NewTexts()
	numbers := []int64{0, -1, 1, math.MinInt64, math.MaxInt64}
	for i := range int64(2 * knownNumbers) {
		numbers = append(numbers, i, -i<<40)
	}
	for range 2 {
		for _, n := range numbers {
			attributes := pcommon.NewMap()
			known.putNumber(attributes, "number", n)
			known.putString(attributes, "string", fmt.Sprint(n))
			known.putText(attributes, "text", []byte(fmt.Sprint("text ", n)), Text{})
			known.putText(attributes, "long", []byte(strings.Repeat("x", longestKnown)+fmt.Sprint(n)), Text{})
			known.putText(attributes, "empty", nil, Text{})
			require.Equal(t, map[string]any{
				"number": n, "string": fmt.Sprint(n), "text": fmt.Sprint("text ", n), "long": strings.Repeat("x", longestKnown) + fmt.Sprint(n), "empty": "",
			}, attributes.AsRaw())
		}
	}
}
