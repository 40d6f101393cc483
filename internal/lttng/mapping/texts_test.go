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
	"go.opentelemetry.io/collector/pdata/plog"
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
	known, text, number := NewTexts(), pcommon.NewValueEmpty(), pcommon.NewValueEmpty()
	name := []byte("worker-1")
	set := func() {
		known.setText(text, name, Text{})
		known.setNumber(number, 4711)
	}
	set()
	assert.Zero(t, testing.AllocsPerRun(100, set))
	assert.Equal(t, "worker-1", text.Str())
	assert.EqualValues(t, 4711, number.Int())
}

func TestAttributesOfTheSameThreadShareItsNumberAndName(t *testing.T) {
	known, thread := NewTexts(), NewThread(4711, "worker-1")
	records := plog.NewLogRecordSlice()
	write := func() map[string]any {
		known.attributes.EnsureCapacity(2)
		thread.write(&known.attributes, known, &RecordSize{})
		r := records.AppendEmpty()
		known.attributes.UnsafeIntoMap(r.Attributes())
		return r.Attributes().AsRaw()
	}
	first := map[string]any{"thread.id": int64(4711), "thread.name": "worker-1"}
	assert.Equal(t, first, write())
	assert.Equal(t, first, write())
	thread.SetName("worker-2")
	assert.Equal(t, map[string]any{"thread.id": int64(4711), "thread.name": "worker-2"}, write())
	assert.Equal(t, first, records.At(0).Attributes().AsRaw(), "a record has the name of its time")

	known.attributes.EnsureCapacity(8 * 100)
	assert.Zero(t, testing.AllocsPerRun(100, func() { thread.write(&known.attributes, known, &RecordSize{}) }))
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
			known.setNumber(attributes.PutEmpty("number"), n)
			known.setText(attributes.PutEmpty("text"), []byte(fmt.Sprint("text ", n)), Text{})
			known.setText(attributes.PutEmpty("long"), []byte(strings.Repeat("x", longestKnown)+fmt.Sprint(n)), Text{})
			known.setText(attributes.PutEmpty("empty"), nil, Text{})
			require.Equal(t, map[string]any{
				"number": n, "text": fmt.Sprint("text ", n), "long": strings.Repeat("x", longestKnown) + fmt.Sprint(n), "empty": "",
			}, attributes.AsRaw())
		}
	}
}
