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

	"github.com/callbraid/callbraid/internal/greys"
)

// written is answers as a server says them to one command.
func written(replies []greys.Reply) (b []byte) {
	var records []greys.Record
	var methods []greys.Method
	for _, r := range replies {
		switch r := r.(type) {
		case *greys.Affected:
			b = AppendAffected(b, r, 22*time.Millisecond)
		case *greys.Version:
			b = AppendVersion(b, r)
		case *greys.Sessions:
			b = AppendSession(b, r, true)
		case *greys.Statistics:
			b = AppendStatistics(b, r)
		case *greys.Tree:
			b = AppendTree(b, r)
		case *greys.CallStack:
			b = AppendCallStack(b, r)
		case *greys.Record:
			records = append(records, *r)
		case *greys.RecordDetail:
			b = AppendRecordDetail(b, r)
		case *greys.Class:
			b = AppendClass(b, r)
		case *greys.Method:
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

// took is how long something took, as captures have it and as written has it.
var took = regexp.MustCompile(`cost in \d+ ms`)

// asCaptured is a capture as far as answers hold it: without the end, without the picture
// above a version, and with the time that something took as written has it.
func asCaptured(name string, loud bool, content []byte) []byte {
	content = bytes.TrimSuffix(content, []byte{EndOfReply})
	content = bytes.TrimSuffix(content, []byte(promptOf(loud)))
	const pictureLines = 6
	if name == "version" || name == "version_i" {
		content = bytes.Join(bytes.SplitAfter(content, []byte("\n"))[pictureLines:], nil)
	}
	return took.ReplaceAll(content, []byte("cost in 22 ms"))
}

// notWrittenAlike says which captures hold more than their answers.
var notWrittenAlike = map[string]string{
	"ptrace":      "its title says a number",
	"fields":      "classes above the parent; annotations of fields",
	"inherited":   "which class was asked for, where its parent declares a method",
	"recursion_i": "repetitions",
}

func TestAnswersAreWrittenAsTheyWereCaptured(t *testing.T) {
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

func TestRecordsAreWrittenOneByOneAsTheyWereCaptured(t *testing.T) {
	want := captures(t)["tt.raw"]
	replies, err := answers(greys.RecordCommand{}, "", Config{}, want)
	require.NoError(t, err)
	var b []byte
	for i, r := range replies {
		b = AppendRecord(b, r.(*greys.Record), i == 0, i == len(replies)-1)
	}
	assert.Equal(t, string(want), string(append(b, EndOfReply)))
}

func TestThatNothingIsRecordedIsWrittenAsItWasCaptured(t *testing.T) {
	assert.Equal(t, string(captures(t)["tt_s.raw"]), string(append(AppendRecords(nil, nil), EndOfReply)))
}

func TestPromptsAndRefusalsAreReadAsTheyAreWritten(t *testing.T) {
	prompt := AppendPrompt(nil)
	_, err := answers(greys.RecordDetailCommand{}, string(prompt), Config{}, append(append(AppendNoRecord(nil, 7), prompt...), EndOfReply))
	require.ErrorIs(t, err, greys.ErrRefused)
	require.ErrorContains(t, err, "Time fragment[7] does not exist.")
	_, err = answers(greys.ResetCommand{}, string(prompt), Config{}, []byte(SessionTimedOut+"\n"))
	require.ErrorIs(t, err, greys.ErrSessionTimedOut)
}
