// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package treeformat

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

// FuzzNames has names in every place that formats have for one.
func FuzzNames(f *testing.F) {
	f.Add(hostile, "shop", "main")
	f.Add("", "\xff", "a;b 1 2")
	f.Fuzz(func(t *testing.T, function, service, file string) {
		s := shop()
		s.Service = service
		s.Nodes[1].Function, s.Nodes[1].File = function, file
		var b bytes.Buffer
		require.NoError(t, WriteProfile(&b, s))
		p, err := profile.Parse(&b)
		require.NoError(t, err)
		assert.Equal(t, Name(function), p.Sample[1].Location[0].Line[0].Function.Name)

		b.Reset()
		require.NoError(t, WriteFolded(&b, s))
		assert.Equal(t, 6, strings.Count(b.String(), "\n"))
		assert.Equal(t, 6, strings.Count(b.String(), " "))

		b.Reset()
		require.NoError(t, WriteSpeedscope(&b, s))
		assert.True(t, json.Valid(b.Bytes()) && utf8.Valid(b.Bytes()))

		b.Reset()
		spans := []calltree.KeptSpan{{Function: function, Service: service, File: file, ThreadName: file}}
		require.NoError(t, WriteSpeedscopeTrace(&b, calltree.TraceID{}, spans))
		assert.True(t, json.Valid(b.Bytes()) && utf8.Valid(b.Bytes()))
	})
}
