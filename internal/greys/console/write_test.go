// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// written returns the text of all replies to one command.
func written(replies []javamethods.Reply) (b []byte) {
	var records []javamethods.Record
	var methods []javamethods.Method
	for _, r := range replies {
		switch r := r.(type) {
		case *javamethods.Affected:
			b = AppendAffected(b, r, 22*time.Millisecond)
		case *javamethods.Version:
			b = AppendVersion(b, r)
		case *javamethods.Sessions:
			b = AppendSession(b, r, true)
		case *javamethods.Statistics:
			b = AppendStatistics(b, r)
		case *javamethods.Tree:
			b = AppendTree(b, r)
		case *javamethods.CallStack:
			b = AppendCallStack(b, r)
		case *javamethods.Record:
			records = append(records, *r)
		case *javamethods.RecordDetail:
			b = AppendRecordDetail(b, r)
		case *javamethods.Class:
			b = AppendClass(b, r)
		case *javamethods.Method:
			methods = append(methods, *r)
		}
	}
	if records != nil {
		b = AppendRecords(b, records)
	}
	if methods != nil {
		b = AppendMethods(b, methods)
	}
	return b
}

// took matches the duration in a notice.
var took = regexp.MustCompile(`cost in \d+ ms`)

// asCaptured reduces a capture to the content of its replies: without the end and the picture above a version, and with
// a fixed duration.
func asCaptured(name string, loud bool, content []byte) []byte {
	content = bytes.TrimSuffix(content, []byte{EndOfReply})
	content = bytes.TrimSuffix(content, []byte(promptOf(loud)))
	const pictureLines = 6
	if name == "version" || name == "version_i" {
		content = bytes.Join(bytes.SplitAfter(content, []byte("\n"))[pictureLines:], nil)
	}
	return took.ReplaceAll(content, []byte("cost in 22 ms"))
}

// notWrittenAlike are captures that contain more than their replies, with the difference.
var notWrittenAlike = map[string]string{
	"ptrace":      "its title has a number",
	"fields":      "classes above the parent; annotations of fields",
	"inherited":   "the requested class of a method that its parent declares",
	"recursion_i": "repetitions",
}

func TestCapturedAnswersAreWrittenEqually(t *testing.T) {
	all := captures(t)
	for _, c := range captured {
		t.Run(c.name, func(t *testing.T) {
			replies, err := answers(c.command, promptOf(c.loud), Config{}, endedAs(c.name, all[c.name+".raw"]))
			if err != nil || len(replies) == 0 {
				return // there is nothing to write
			}
			text := written(replies)
			if _, differs := notWrittenAlike[c.name]; !differs {
				assert.Equal(t, string(asCaptured(c.name, c.loud, all[c.name+".raw"])), string(text))
			}
			again, err := answers(c.command, promptOf(c.loud), Config{}, append(append(text, promptOf(c.loud)...), EndOfReply))
			require.NoError(t, err)
			assert.Equal(t, replies, again)
		})
	}
}

func TestCapturedRecordsAreWrittenOneByOneEqually(t *testing.T) {
	want := captures(t)["tt.raw"]
	replies, err := answers(javamethods.RecordCommand{}, "", Config{}, want)
	require.NoError(t, err)
	var b []byte
	for i, r := range replies {
		b = AppendRecord(b, r.(*javamethods.Record), i == 0, i == len(replies)-1)
	}
	assert.Equal(t, string(want), string(append(b, EndOfReply)))
}

func TestACapturedUnknownRecordIsWrittenEqually(t *testing.T) {
	assert.Equal(t, string(captures(t)["tt_s.raw"]), string(append(AppendRecords(nil, nil), EndOfReply)))
}

func TestWrittenPromptsAndRefusalsAreReadBack(t *testing.T) {
	prompt := AppendPrompt(nil)
	_, err := answers(javamethods.RecordDetailCommand{}, string(prompt), Config{}, append(append(AppendNoRecord(nil, 7), prompt...), EndOfReply))
	require.ErrorIs(t, err, javamethods.ErrRefused)
	require.ErrorContains(t, err, "Time fragment[7] does not exist.")
	_, err = answers(javamethods.ResetCommand{}, string(prompt), Config{}, []byte(SessionTimedOut+"\n"))
	require.ErrorIs(t, err, javamethods.ErrSessionTimedOut)
}
