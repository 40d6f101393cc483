// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// definition matches the begin of a function's definition in a source file in C.
var definition = regexp.MustCompile(`^\w[^(;]*\b(\w+)\([^;]*$`)

// definitions returns the file of a program in C, and the line of the opening brace of each function: the first line
// of its code.
func definitions(t *testing.T, source string) map[string]string {
	t.Helper()
	content, err := os.ReadFile(source)
	require.NoError(t, err)
	path, err := filepath.Abs(source)
	require.NoError(t, err)
	places, function := map[string]string{}, ""
	for i, line := range bytes.Split(content, []byte("\n")) {
		if found := definition.FindSubmatch(line); found != nil {
			function = string(found[1])
		} else if string(line) == "{" {
			places[function] = fmt.Sprintf("%s:%d", path, i+1)
		}
	}
	return places
}

// requireLines compares the source lines of spans with the definitions of their functions.
func requireLines(t *testing.T, spans []ptrace.Span, source string) {
	t.Helper()
	places, functions := definitions(t, source), map[string]bool{}
	for _, span := range spans {
		function, _ := span.Attributes().Get("code.function.name")
		file, _ := span.Attributes().Get("code.file.path")
		line, _ := span.Attributes().Get("code.line.number")
		require.Equal(t, places[function.AsString()], file.AsString()+":"+line.AsString(), function.AsString())
		functions[function.AsString()] = true
	}
	assert.Greater(t, len(functions), 3)
}

// requireLinesOfPage compares the source lines in the profile of a service with the definitions of its functions.
func requireLinesOfPage(t *testing.T, pages, service, source string) {
	t.Helper()
	p, err := profile.Parse(bytes.NewReader([]byte(fetch(t, "http://"+pages+"/services/"+service+"/profile.pb.gz"))))
	require.NoError(t, err)
	places := definitions(t, source)
	for _, l := range p.Location {
		function := l.Line[0].Function
		require.Equal(t, places[function.Name], fmt.Sprintf("%s:%d", function.Filename, l.Line[0].Line), function.Name)
	}
	assert.Greater(t, len(p.Function), 3)
}
