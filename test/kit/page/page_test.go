// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStepsAreThePagesOwnText(t *testing.T) {
	steps, err := stepsOf("# A page\n\nText, `code`.\n\n<!-- not run: why -->\n```sh\nrm -rf /\n```\n\n" +
		"<!-- file: a.yaml -->\n```yaml\na: {b: 1}\n\n# c\n```\n\n```\nthis is only shown\n```\n\n" +
		"- indented\n\n  <!-- run -->\n  ```sh\n  one \\\n    two\n  ```\n\n  <!-- shows the like -->\n\n  ```\n  3\n  ```\n\n" +
		"<!-- terminal: it -->\n```sh\nit\n```\n<!-- says: it -->\n```\nready\n```\n<!-- run -->\n```sh\nlook\n```\n\n<!-- shows nothing -->\n<!-- says only info: it -->\n<!-- ends: it -->\n")
	require.NoError(t, err)
	assert.Equal(t, []step{
		{notRun, "why", "rm -rf /\n", 5},
		{file, "a.yaml", "a: {b: 1}\n\n# c\n", 10},
		{run, "", "one \\\n  two\n", 23},
		{showsTheLike, "", "3\n", 29},
		{terminal, "it", "it\n", 35},
		{says, "it", "ready\n", 39},
		{run, "", "look\n", 43},
		{showsNothing, "", "", 48},
		{saysOnlyInfo, "it", "", 49},
		{ends, "it", "", 50},
	}, steps)
}

func TestAPageThatIsNotClearIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"```sh\nls\n```\n":                         "line 1: expected a comment in front of commands",
		"<!-- runs -->\n```sh\nls\n```\n":          "line 1: expected a comment that is known",
		"<!-- terminal -->\n```sh\nls\n```\n":      "line 1: expected a comment that is known",
		"<!-- run: it -->\n```sh\nls\n```\n":       "line 1: expected a comment that is known",
		"<!-- run -->\n\nText.\n":                  "line 3: expected a block for \"run\"",
		"<!-- run -->\n<!-- run -->\n":             "line 2: expected a block for \"run\"",
		"<!-- run -->\n":                           "line 1: expected a block for \"run\"",
		"text\n\n<!-- run -->\n```sh\nls\n":        "line 4: expected the end of the block",
		"<!-- shows -->\n\n<!-- shows nothing -->": "line 3: expected a block for \"shows\"",
	} {
		_, err := stepsOf(text)
		assert.ErrorContains(t, err, want, text)
	}
}

func TestOutputIsCompared(t *testing.T) {
	for _, test := range []struct {
		name, shown, there string
		theLike            bool
		is, in             bool
	}{
		{name: "the same", shown: "a\nb 1\n", there: "a\nb 1\n", is: true, in: true},
		{name: "without the last line break", shown: "a\n", there: "a", is: true, in: true},
		{name: "other blanks", shown: "a  b\n", there: "\ta \t b\n", is: true, in: true},
		{name: "another letter", shown: "a.c\n", there: "abc\n"},
		{name: "another number", shown: "b 1\n", there: "b 2\n"},
		{name: "a line more", shown: "a\n", there: "a\nb\n", in: true},
		{name: "a line less", shown: "a\nb\n", there: "a\n"},
		{name: "nothing", shown: "a\n", there: ""},
		{name: "lines between", shown: "a\nb\n", there: "x\na\ny\nb\nz\n", in: true},
		{name: "another order", shown: "b\na\n", there: "a\nb\n"},
		{name: "omitted text", shown: "… info … ready …}\n", there: "2026\tinfo\tx.go:1\tready {1}\n", is: true, in: true},
		{name: "more than the omitted text", shown: "… info\n", there: "an info more\n"},
		{name: "other numbers", shown: "12 µs in v1.5e-05\n", there: "7.25 µs in v3\n", theLike: true, is: true, in: true},
		{name: "other numbers, other words", shown: "12 µs\n", there: "7 ms\n", theLike: true},
		{name: "no number", shown: "63 of 1497\n", there: " of 22\n", theLike: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newShown(test.shown, test.theLike)
			assert.Equal(t, test.is, s.is(test.there), "is")
			assert.Equal(t, test.in, s.in(test.there), "in")
		})
	}
}
