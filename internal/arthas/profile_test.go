// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthas

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// profiles returns the results of the profiler in a capture, in their order.
func profiles(t testing.TB, name string) (all []*Profiler) {
	for _, e := range captures(t)[name] {
		a, _ := readAnswer(t, e.Answer)
		for _, it := range a.items {
			if p, is := it.result.(*Profiler); is {
				all = append(all, p)
			}
		}
	}
	return all
}

func TestACapturedProfileIsRead(t *testing.T) {
	all := profiles(t, "61-profiler-execute")
	require.Len(t, all, 6)
	for i, running := range []bool{false, false, true} {
		since, is := all[i].Running()
		assert.Equal(t, running, is)
		assert.Equal(t, running, since == time.Second)
	}
	profile := all[3]
	assert.False(t, profile.HasNoStacks())
	assert.Equal(t, profile.Text, all[4].Text, "a profiler that does not run sends the stacks of the last start")
	kinds := map[FrameKind]map[string]bool{FrameNative: {}, FrameJava: {}, FrameKernel: {}}
	var malformed, spin, sum int64
	for stack := range profile.Stacks(&malformed) {
		sum += stack.Value
		var frames []string
		for frame := range stack.Frames() {
			kinds[frame.Kind][frame.Name] = true
			frames = append(frames, frame.Name)
		}
		if slices.Contains(frames, "demo.Shop.spin") {
			spin += stack.Value
			assert.Equal(t, []string{"demo.Shop.main", "demo.Shop.spin"}, frames[:2])
		}
	}
	assert.Zero(t, malformed)
	// The program was in spin for 0.3 s, and had a processor for a part of it: the machine was busy.
	assert.Greater(t, spin, int64(100*time.Millisecond))
	assert.Less(t, spin, int64(330*time.Millisecond))
	assert.Less(t, spin, sum)
	assert.True(t, kinds[FrameJava]["java.util.concurrent.locks.LockSupport.parkNanos"])
	assert.True(t, kinds[FrameNative]["Unsafe_Park"])
	assert.True(t, kinds[FrameKernel]["do_syscall_64"])
	for kind, names := range kinds {
		for name := range names {
			assert.False(t, strings.HasSuffix(name, "]"), "%d: %s", kind, name)
		}
	}
}

func TestLinesThatAreNoStacksAreCounted(t *testing.T) {
	var malformed int64
	p := Profiler{Text: "a;b_[j] 3\n\nc 4\nno value\n 5\nd -1\ne 0\nf 99999999999999999999\noperator new(unsigned long) 6"}
	got := []string{}
	for stack := range p.Stacks(&malformed) {
		frames := []string{}
		for frame := range stack.Frames() {
			frames = append(frames, fmt.Sprint(frame.Name, frame.Kind))
		}
		got = append(got, fmt.Sprint(frames, stack.Value))
	}
	assert.Equal(t, []string{"[a0 b1] 3", "[c0] 4", "[operator new(unsigned long)0] 6"}, got)
	assert.EqualValues(t, 5, malformed)
}

func TestOnlyARunningProfilerHasATime(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"Profiling is running for 3 seconds\n": 3 * time.Second, "[cpu] profiling is running for 60 seconds\n": time.Minute,
		"Profiler is not active\n": -1, "": -1, "Profiling is running for x seconds\n": -1, "Profiling is running for 3": -1,
	} {
		since, is := (&Profiler{Text: text}).Running()
		assert.Equal(t, want >= 0, is, text)
		if is {
			assert.Equal(t, want, since)
		}
	}
	assert.True(t, (&Profiler{Text: "Profiling stopped after 3 seconds. No dump options specified\n"}).HasNoStacks())
}

func TestLongTextsAreCutWhileTheyAreRead(t *testing.T) {
	for _, tt := range []struct {
		name, body, kept string
		cut              int64
	}{
		{"short", `{"a":"bcd"}`, `{"a":"bcd"}`, 0},
		{"long", `{"a":"bcdefg","h":[1,"ijklmn"]}`, `{"a":"bcd","h":[1,"ijk"]}`, 6},
		{"quote in an escape", `{"a":"bcd\"e","f":1}`, `{"a":"bcd","f":1}`, 3},
		{"escape at the limit", `{"a":"bc\né\\d"}`, `{"a":"bc\n"}`, 5},
		{"escape of a character at the limit", `{"a":"bc\u00e9\u00e9"}`, `{"a":"bc\u00e9"}`, 6},
		{"backslash at the end", `{"a":"b\\\\\\"}`, `{"a":"b\\"}`, 4},
		{"texts as keys", `{"abcdef":1}`, `{"abc":1}`, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, reader := range []io.Reader{strings.NewReader(tt.body), iotest.OneByteReader(strings.NewReader(tt.body))} {
				texts := &shortTexts{from: reader, longest: 3}
				kept, err := io.ReadAll(texts)
				require.NoError(t, err)
				assert.Equal(t, tt.kept, string(kept))
				assert.Equal(t, tt.cut, texts.cut)
				assert.True(t, json.Valid(kept))
			}
		})
	}
}

// profileServer answers each request with a profile.
func profileServer(t *testing.T, stacks string) *Client {
	t.Helper()
	text, err := json.Marshal(stacks)
	require.NoError(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"body":{"results":[{"action":"execute","executeResult":%s,"type":"profiler"},{"statusCode":0,"type":"status"}]},"state":"SUCCEEDED"}`, text)
	}))
	t.Cleanup(server.Close)
	c, err := NewClient(server.Client(), server.URL, Settings{MaxAnswer: 1024})
	require.NoError(t, err)
	return c
}

func TestAProfileHasABoundOfItsOwn(t *testing.T) {
	const line = "java/lang/Thread.run_[j];demo/Shop.buy_[j] 10000000\n"
	all := strings.Repeat(line, 1000)
	stop := func(maxText int64) (*Profiler, error) {
		e, err := profileServer(t, all).Exec(t.Context(), StopProfilerCommand{MaxText: maxText}, time.Second)
		if err != nil {
			return nil, err
		}
		require.Len(t, e.Results, 1)
		return e.Results[0].(*Profiler), nil
	}
	// The text is longer than an answer of another command may be.
	whole, err := stop(100 << 10)
	require.NoError(t, err)
	assert.Equal(t, all, whole.Text)
	assert.Zero(t, whole.Cut)

	cut, err := stop(10 << 10)
	require.NoError(t, err)
	assert.Less(t, len(cut.Text), 10<<10)
	assert.Equal(t, 0, len(cut.Text)%len(line), "whole lines")
	assert.Greater(t, len(cut.Text), 10<<10-5*len(line), "an escape counts as two bytes")
	lost := int64(len(all) - len(cut.Text))
	assert.InDelta(t, lost, cut.Cut, float64(lost)/20)

	_, err = stop(1 << 10)
	assert.ErrorIs(t, err, ErrTooLarge, "no more than a multiple of the bound is read")
}

func FuzzProfile(f *testing.F) {
	for _, p := range profiles(f, "61-profiler-execute") {
		f.Add(p.Text, int64(100))
	}
	f.Add("a;;b \\u00e9\" 1\n", int64(3))
	f.Fuzz(func(t *testing.T, text string, longest int64) {
		var malformed int64
		p := &Profiler{Text: text}
		for stack := range p.Stacks(&malformed) {
			if stack.Value <= 0 {
				t.Errorf("value %d", stack.Value)
			}
			for frame := range stack.Frames() {
				if strings.Contains(frame.Name, ";") || frame.Kind > FrameKernel {
					t.Errorf("frame %+v", frame)
				}
			}
		}
		body, err := json.Marshal(map[string]string{"text": text})
		if err != nil {
			return
		}
		texts := &shortTexts{from: iotest.HalfReader(strings.NewReader(string(body))), longest: longest & 0xff}
		kept, err := io.ReadAll(texts)
		if err != nil || !json.Valid(kept) || int64(len(body)-len(kept)) != texts.cut {
			t.Errorf("of %s: %s, cut %d, %v", body, kept, texts.cut, err)
		}
	})
}
