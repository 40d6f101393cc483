// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestEachPatternIsFoundInATextAndNotInItsPlainForm(t *testing.T) {
	for _, c := range []struct{ unclear, plain string }{
		{"Whoever connects can send data.", "Every client can send data."},
		{"It keeps whatever arrives.", "It keeps all data."},
		{"Its numbers begin anew.", "Its numbers begin again."},
		{"As fast as it was read of late.", "At the recent rate."},
		{"All but for one.", "All except one."},
		{"The tidings wait.", "The pending renames wait."},
		{"The connection is closed unheard.", "The connection is closed, and nothing was read."},
		{"They waited in vain.", "They never arrived."},
		{"Two agents at once.", "Two agents at the same time."},
		{"It hangs for ever.", "It hangs forever."},
		{"Batches are handed on.", "Batches are sent."},
		{"The agent is told to stop.", "The agent receives stop."},
		{"The rename is heard of late.", "The rename arrives late."},
		{"A monitor tells of a cycle.", "A monitor reports a cycle."},
		{"The log says so.", "The log has the reason."},
		{"It is said in the log.", "The log has it."},
		{"Pages are refused to who asks.", "Pages are refused to the client."},
		{"The agent is turned away.", "The agent is refused."},
		{"Agents are left in order.", "The receiver disconnects agents in order."},
		{"It counts what is missing.", "It counts missing events."},
		{"Keep it local. Who reaches it can write.", "Keep it local. A client can write."},
		{"What others send is limited.", "The peers' data is limited."},
		{"It counts what\n# is missing.", "It counts missing\n# events."},
	} {
		if found := findingsIn("x.md", text{1, c.unclear}); len(found) == 0 {
			t.Errorf("%q: expected a finding, got none", c.unclear)
		}
		if found := findingsIn("x.md", text{1, c.plain}); len(found) > 0 {
			t.Errorf("%q: expected no finding, got %v", c.plain, found)
		}
	}
}

func TestTextsAreTheSentencesThatReadersSee(t *testing.T) {
	for _, c := range []struct {
		name    string
		extract func(string) ([]text, error)
		content string
		want    []text
	}{
		{"code, links, titles and comments of a page are no sentences", prose,
			"# What is it\n\nSee `what is` [it](what-is.md).\n\n```\nwhat is\n```\n<!-- what is -->\n",
			[]text{{1, "X"}, {3, "See X [itX."}, {5, "X"}, {8, "X"}}},
		{"a comment is a text, without quotes and indented code", comments,
			"package a\n\n// One `what is` and \"what is\"\n// two.\n//\n//\twhat is\nvar b = \"what is\"\n",
			[]text{{3, "// One X and X\n// two.\n//\nX"}}},
		{"each cell of a table is a text", prose, "| a b | c |\n|---|---|\n| d | e f |\n",
			[]text{{1, "a b "}, {1, "c "}, {2, "X\n"}, {3, "d "}, {3, "e f "}}},
		{"each item of a list is a text, with its line", prose, "One.\n- two\n  lines\n- three\n", []text{{1, "One."}, {2, "two\n  lines"}, {4, "three\n"}}},
		{"tags and actions of a web page are no sentences", page, "<p class=\"what is\">{{what is}}Nothing</p>", []text{{1, "XXNothingX"}}},
		{"the changelog is read to the first release", unreleased, "# C\n\n## [Unreleased]\n\nNew.\n\n## [1.0.0]\n\nOld.\n", []text{{5, "New."}}},
		{"literals with a blank are texts of Go code", literals,
			"package p\n\nimport \"fmt\"\n\ntype s struct {\n\tA int `what is:\"it\"`\n}\n\nvar e = fmt.Errorf(\"one \" +\n\t\"two\", \"word\")\n",
			[]text{{9, "one two"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.extract(c.content)
			if err != nil {
				t.Fatal(err)
			}
			for i := range got {
				got[i].content = strings.TrimRight(got[i].content, " \n")
			}
			for i := range c.want {
				c.want[i].content = strings.TrimRight(c.want[i].content, " \n")
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("expected %q, got %q", c.want, got)
			}
		})
	}
}

func TestAFindingHasItsFileAndLine(t *testing.T) {
	got := findingsIn("docs/a.md", text{7, "One sentence.\nThe agent was\ntold."})
	if len(got) != 1 || got[0].line != 8 || !strings.HasPrefix(got[0].String(), `docs/a.md:8: "was\ntold": write `) {
		t.Errorf("expected one finding in docs/a.md:8, got %v", got)
	}
}

func TestDirectoriesOfCodeHaveTestsAndNoGeneratedCode(t *testing.T) {
	root := t.TempDir()
	for _, file := range []string{"a/b/b.go", "a/b_test.go", "a/generated_b.go", "a/testdata/c.go", "a/btest/b.go", "a/text.md"} {
		path := filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("package a\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := place{globs: []string{"a/..."}}.files(root)
	if err != nil || !slices.Equal(got, []string{"a/b/b.go", "a/b_test.go", "a/btest/b.go"}) {
		t.Errorf("expected b.go and two files of tests, got %v, %v", got, err)
	}
	if _, err := (place{globs: []string{"none/*.md"}}).files(root); err == nil {
		t.Error("expected an error for a place without files, got none")
	}
}
