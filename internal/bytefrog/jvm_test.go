// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrog

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/bytefrog/javaser/jvmtest"
)

// jvmCases are configurations for a JVM to read.
func jvmCases() map[string]AgentConfiguration {
	thousand := make([]string, 1000)
	for i := range thousand {
		thousand[i] = fmt.Sprintf("^com/example/p%d/", i%700) // some of them repeat
	}
	return map[string]AgentConfiguration{
		"demo":           demoConfiguration,
		"maven":          mavenConfiguration,
		"nothing at all": {},
		"the largest numbers": {
			RunID: 127, HeartbeatInterval: math.MaxInt32 * time.Millisecond,
			BufferMemoryBudget: math.MaxInt32, QueueRetryCount: math.MaxInt32, DataConnections: math.MaxInt32,
		},
		"the smallest numbers": {
			RunID: 128, HeartbeatInterval: math.MinInt32 * time.Millisecond,
			BufferMemoryBudget: math.MinInt32, QueueRetryCount: math.MinInt32, DataConnections: math.MinInt32,
		},
		"minus one": {
			RunID: 255, HeartbeatInterval: -time.Millisecond,
			BufferMemoryBudget: -1, QueueRetryCount: -1, DataConnections: -1,
		},
		"expressions of any characters": {
			Exclusions: []string{"", "^démo/", "\x00", "a\x00b", "€", "😀", "x\U0010FFFFy", "\uD7FF\uE000", "\uFFFD", "\uFFFF"},
			Inclusions: []string{`"double"`, `'single'`, `back\slash`, "new\nline", "tab\t", "\u2028", "日本語/クラス"},
		},
		"repeated expressions": {
			Exclusions: []string{"^same/", "^same/", "^other/", "^same/"},
			Inclusions: []string{"^other/", "^same/"},
		},
		"expressions that are names of the stream": {
			Exclusions: []string{"Ljava/util/List;", "java.util.ArrayList", "size", "runId"},
			Inclusions: []string{"Ljava/util/List;"},
		},
		"one list empty":  {Inclusions: []string{"^demo/"}},
		"a thousand":      {Exclusions: thousand, Inclusions: thousand[:10]},
		"64 KiB and more": {Exclusions: []string{strings.Repeat("é", 40_000), strings.Repeat("x", MaxString)}},
	}
}

// printed returns the Java program's output for c, whose serialised object is data.
func printed(c AgentConfiguration, data []byte) string {
	var b strings.Builder
	list := func(name string, texts []string) {
		fmt.Fprintf(&b, "%s java.util.ArrayList %d\n", name, len(texts))
		for _, text := range texts {
			b.WriteString("-")
			for _, unit := range utf16.Encode([]rune(text)) {
				fmt.Fprintf(&b, " %04X", unit)
			}
			b.WriteString("\n")
		}
	}
	fmt.Fprintf(&b, "runId %d\n", int8(c.RunID))
	fmt.Fprintf(&b, "heartbeatInterval %d\n", c.HeartbeatInterval.Milliseconds())
	list("exclusions", c.Exclusions)
	list("inclusions", c.Inclusions)
	fmt.Fprintf(&b, "bufferMemoryBudget %d\nqueueRetryCount %d\nnumDataSenders %d\n", c.BufferMemoryBudget, c.QueueRetryCount, c.DataConnections)
	fmt.Fprintf(&b, "again %X\n", data)
	return b.String()
}

// A JVM reads each configuration message with ObjectInputStream, prints the values, and writes the object with
// ObjectOutputStream. The values and the bytes must be equal to ours.
func TestAJVMReadsTheConfiguration(t *testing.T) {
	var sent []byte
	var want strings.Builder
	for _, c := range jvmCases() {
		m, err := c.Message(1)
		require.NoError(t, err)
		sent = m.AppendTo(sent)
		want.WriteString(printed(c, m.(Configuration).Data))
	}
	got := string(jvmtest.Run(t, "testdata/java", "ReadConfigurations", sent))

	wantLines, gotLines := strings.Split(want.String(), "\n"), strings.Split(got, "\n")
	for i := range min(len(wantLines), len(gotLines)) {
		require.Equal(t, wantLines[i], gotLines[i], "line %d", i+1)
	}
	assert.Equal(t, len(wantLines), len(gotLines), "lines")
}
