// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package merge_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/merge"
	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
)

// word is the text of events that report that tracing resumes.
const word = "again"

func TestAnEventThatTracingResumesEndsALoss(t *testing.T) {
	const late = 50_000_001
	for name, script := range map[string][]after{
		"the loss begins at the end of the previous packet": {
			{streams("a", "b"), nil},
			{send("a", packet{begin: 1, end: 9, events: at(2)}), nil},
			{send("b", packet{begin: 1, end: 50, events: at(8, 12, 16, 18)}), []string{"a 2", "b 8"}},
			{send("a", packet{sequence: 1, begin: 15, end: 30, events: []event{{15, ""}, {17, word}, {19, ""}}}), []string{
				"a: stopped from 9", "b 12", "a 15", "b 16", "a 17", "a: 0 stopped to 17", "b 18", "a 19",
			}},
		},
		"the loss begins at the begin of the first packet": {
			{send("a", packet{begin: 1, end: 9, events: []event{{3, word}, {4, ""}}}), []string{"a: stopped from 1", "a 3", "a: 0 stopped to 3", "a 4"}},
		},
		"the last one of several events ends the loss": {
			{send("a", packet{begin: 1, end: 9, events: []event{{3, word}, {4, word}}}), []string{"a: stopped from 1", "a 3", "a 4", "a: 0 stopped to 4"}},
		},
		"no loss in a packet that follows a full one": {
			{send("a", packet{begin: 1, end: 9, events: at(2)}), []string{"a 2"}},
			{send("a", packet{sequence: 1, begin: 9, end: 30, events: []event{{10, word}}}), []string{"a 10"}},
		},
		"no loss long after the packet's begin": {
			{send("a", packet{begin: 1, end: late + 9, events: []event{{2, ""}, {late + 1, word}}}), []string{"a 2", "a 50000002"}},
		},
		"a loss together with discarded events": {
			{send("a", packet{begin: 1, end: 9, events: at(2)}), []string{"a 2"}},
			{send("a", packet{sequence: 1, begin: 15, end: 30, discarded: 7, events: []event{{16, word}, {17, ""}}, room: 10}), []string{
				"a: discarded events from 9", "a: stopped from 9", "a 16",
				"a: discarded events from 16", "a: 0 stopped to 16", "a: 0 discarded events to 17", "a 17",
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, merge.Options{Resumes: func(e *ctf.Event) bool {
				return string(e.Values.Bytes(e.Class.Field(metadata.EventFields, "text"))) == word
			}})
			for i, s := range script {
				s.step(b)
				assert.Equal(t, s.want, b.drain(), "step %d", i)
			}
		})
	}
}

func TestAnEmptyPacketMeansThatTracingStopped(t *testing.T) {
	for name, script := range map[string][]after{
		"the loss is at its end, once a packet follows": {
			{streams("a", "b"), nil},
			{send("a", packet{begin: 1, end: 9, events: at(2)}), nil},
			{send("b", packet{begin: 1, end: 12, events: at(8)}), []string{"a 2", "b 8"}},
			{send("a", packet{sequence: 1, begin: 12, end: 13}), nil},
			{send("b", packet{sequence: 1, begin: 20, end: 30, events: at(20, 25)}), nil},
			{send("a", packet{sequence: 2, begin: 22, end: 30, events: at(23)}), []string{
				"a: stopped from 13", "a: 0 stopped to 13", "b 20", "a 23", "b 25",
			}},
		},
		"the loss is at its end, once a promise follows": {
			{streams("a", "b"), nil},
			{send("a", packet{begin: 1, end: 9, events: at(2)}, packet{sequence: 1, begin: 12, end: 13}), nil},
			{send("b", packet{begin: 1, end: 30, events: at(8, 20)}), []string{"a 2", "b 8"}},
			{promise("a", 40), []string{"a: stopped from 13", "a: 0 stopped to 13", "b 20"}},
		},
		"no loss at the end of the stream": {
			{send("a", packet{begin: 1, end: 9, events: at(2)}, packet{sequence: 1, begin: 12, end: 13}), []string{"a 2"}},
			{end("a"), []string{"a ended"}},
		},
		"no loss as the first packet": {
			{send("a", packet{begin: 1, end: 9}), nil},
			{send("a", packet{sequence: 1, begin: 12, end: 13, events: at(12)}), []string{"a 12"}},
		},
		"no loss if the previous packet was full": {
			{send("a", packet{begin: 1, end: 9, events: at(2)}, packet{sequence: 1, begin: 9, end: 13}), []string{"a 2"}},
			{send("a", packet{sequence: 2, begin: 14, end: 15, events: at(14)}), []string{"a 14"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, merge.Options{Stops: true})
			for i, s := range script {
				s.step(b)
				assert.Equal(t, s.want, b.drain(), "step %d", i)
			}
		})
	}
}
