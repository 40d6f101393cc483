// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"os"
	"regexp"
	"testing"
)

// Command returns the command of a row in the README's first table, by the text of its first cell. The README is in a folder.
func Command(t testing.TB, folder, purpose string) string {
	t.Helper()
	text, err := os.ReadFile(folder + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| " + regexp.QuoteMeta(purpose) + " \\| `([^`]+)` \\|").FindSubmatch(text)
	if row == nil {
		t.Fatalf("%s/README.md: expected a row that begins with | %s | and a command, got none", folder, purpose)
	}
	return string(row[1])
}
