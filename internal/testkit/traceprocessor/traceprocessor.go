// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package traceprocessor asks Perfetto's own trace_processor about files. It knows the program's command line, and nothing
// of the content of files.
package traceprocessor

import (
	"bytes"
	"encoding/csv"
	"encoding/hex"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// variable names the program.
const variable = "CALLBRAID_TRACE_PROCESSOR"

// Require skips the test unless there is the program.
func Require(t testing.TB) {
	t.Helper()
	if os.Getenv(variable) == "" {
		t.Skipf("set %s to the absolute path of Perfetto's trace_processor_shell", variable)
	}
}

// faults are the rows of the table stats that report an error, a loss or a notice.
const faults = "select name, ifnull(idx, -1), severity, source, value from stats where value != 0 and severity != 'info'"

// Query loads a file once, and returns the rows of each statement. Faults of the file fail the test.
func Query(t testing.TB, file string, statements ...string) (results [][][]string) {
	t.Helper()
	all := append([]string{faults}, statements...)
	command := exec.CommandContext(t.Context(), os.Getenv(variable), "query", file, strings.Join(all, ";\n"))
	var output, messages bytes.Buffer
	command.Stdout, command.Stderr = &output, &messages
	if err := command.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", file, err, messages.String())
	}
	// A blank line separates results: texts are in hexadecimal digits.
	texts := strings.Split(strings.TrimSpace(output.String()), "\n\n")
	if len(texts) != len(all) {
		t.Fatalf("%s: expected %d results, got %d\n%s", file, len(all), len(texts), messages.String())
	}
	for _, text := range texts {
		rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		results = append(results, rows[1:]) // the first row has the names of columns
	}
	if len(results[0]) > 0 {
		t.Errorf("%s: expected no faults in the table stats, got %q", file, results[0])
	}
	return results[1:]
}

// Hex returns an expression of SQL for a text that Text decodes. Any other text could end a field.
func Hex(expression string) string { return "hex(ifnull(" + expression + ", ''))" }

// Text decodes a value of Hex.
func Text(t testing.TB, value string) string {
	t.Helper()
	text, err := hex.DecodeString(value)
	if err != nil {
		t.Fatalf("expected hexadecimal digits, got %q: %v", value, err)
	}
	return string(text)
}
