// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// scanned reads any JSON value.
func scanned(data []byte) error {
	var s scanner
	s.open(data)
	s.skip()
	return s.close()
}

// someJSON are valid and invalid texts for every rule of JSON.
var someJSON = []string{
	"", " ", "null", " true\t", "false\r\n", "nul", "nulll", "True", "{}", "[]", "{ }", "[ ]", "[1,2]", "[1,]", "[,1]", "[,]", "[1 2]", "[1", "]", "{", "}",
	`{"a":1}`, `{"a":1,}`, `{"a"}`, `{"a":}`, `{a:1}`, `{"a" : [ {} , { "b":null } ] }`, `{1:2}`, `{"a":1 "b":2}`, `{"a":1,"a":2}`, `{,}`,
	"0", "-0", "01", "-", "1.", ".5", "1.5", "1e5", "1E+5", "1e-05", "1e", "1e+", "+1", "0x10", "1_000", "-1.25e3", "NaN", "Infinity", "--1",
	`""`, `"a`, `"\"`, `"\""`, `"\\"`, `"\/\b\f\n\r\t"`, `"\a"`, `"\u00e9"`, `"\u00G0"`, `"\u12"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ud83dx"`, `"\ude00\ud83d"`,
	"\"\x00\"", "\"\n\"", "\"\\n\"", "\"\x7f\"", "'a'", "\"\xff\"", "\"\n\xff\"", "é", "\"é\"", "[1]x", "{} {}", "\x00", "/*c*/1", "1 //c",
}

func TestTheScannerAcceptsExactlyJSON(t *testing.T) {
	for _, text := range someJSON {
		want := json.Valid([]byte(text)) && utf8.ValidString(text)
		assert.Equal(t, want, scanned([]byte(text)) == nil, "%q", text)
	}
}

func TestStringsDecodeAsInEncodingJSON(t *testing.T) {
	for _, text := range someJSON {
		var want string
		if !strings.HasPrefix(text, "\"") || !utf8.ValidString(text) || json.Unmarshal([]byte(text), &want) != nil {
			continue
		}
		var s scanner
		s.open([]byte(text))
		got, isText := s.scalar()
		require.NoError(t, s.close(), text)
		assert.True(t, isText)
		assert.Equal(t, want, string(got), text)
	}
}

func TestSyntaxErrorsHaveTheirOffset(t *testing.T) {
	for text, message := range map[string]string{
		"":                                      "byte 0: expected a string, a number or a boolean, got the end",
		" {\"a\":1,}":                           `byte 8: expected an element behind the comma, got '}'`,
		"[1 2]":                                 `byte 3: expected a comma or ']', got '2'`,
		`{"a" 1}`:                               `byte 5: expected a colon, got '1'`,
		`{a:1}`:                                 `byte 1: expected a string, got 'a'`,
		`["\x"]`:                                `byte 2: expected an escape, got "\\x\"]"`,
		"[\"\n\"]":                              `byte 2: expected no control character in a string, got '\n'`,
		"[\"\\n\n\"]":                           `byte 4: expected no control character in a string, got '\n'`,
		"[\"\xff\"]":                            "byte 2: expected UTF-8, got invalid bytes",
		"[\"\\n\xff\"]":                         "byte 2: expected UTF-8, got invalid bytes",
		"\"a":                                   "byte 2: expected the end of a string, got the end",
		"\"\\na":                                "byte 4: expected the end of a string, got the end",
		"[1]]":                                  `byte 3: expected the end, got ']'`,
		"-":                                     "byte 1: expected a digit, got the end",
		"tru":                                   `byte 0: expected true, got 't'`,
		strings.Repeat("[", maxDepth+1):         `byte 64: expected at most 64 nested arrays and objects, got '['`,
		strings.Repeat(`{"a":`, maxDepth+1):     `byte 320: expected at most 64 nested arrays and objects, got '{'`,
		strings.Repeat("[", 1_000_000) + "\x00": "byte 64: expected at most 64",
	} {
		require.ErrorContains(t, scanned([]byte(text)), message, "%.40q", text)
	}
	require.NoError(t, scanned([]byte(strings.Repeat("[", maxDepth)+strings.Repeat("]", maxDepth))))
}
