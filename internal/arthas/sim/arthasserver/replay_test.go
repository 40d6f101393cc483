// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/arthas/sim/capture"
	"github.com/callbraid/callbraid/internal/testkit"
)

// notReplayed are captures whose answers depend on what happened beside their requests.
var notReplayed = map[string]string{
	"23-big-results":                   "it has more classes than the simulated program",
	"24-parallel-long-polls":           "it has one of nine requests",
	"25-exec-client-closes":            "it shows the threads of the server",
	"31-session-expiry":                "sessions expired while the client waited",
	"41-vanish-fast-job-trace":         "the job ended while the client waited",
	"51-no-poll-1000-calls-per-s":      "the job ended while the client waited",
	"62-profiler-timeout":              "the profiler stopped while the client waited",
	"53-size-limits":                   "it has large objects",
	"30b-auth-local-bypass":            "its server has other settings: the tests of authentication have it",
	"50-backpressure-1000-calls-per-s": "most of its requests are not in it",
}

// replay sends the requests of a capture to a server, with the IDs of the server in place of those of the capture.
type replay struct {
	*testing.T
	server *Server
	ids    map[string]string
}

func TestTheServerAnswersAsTheCapturesShow(t *testing.T) {
	names, err := filepath.Glob("../../../../testdata/arthas/*.txt")
	require.NoError(t, err)
	shapes := capturedShapes(t, names)
	compared := 0
	for _, name := range names {
		base := strings.TrimSuffix(filepath.Base(name), ".txt")
		if notReplayed[base] != "" {
			continue
		}
		t.Run(base, func(t *testing.T) {
			settings := fast()
			if base == "61-profiler-execute" {
				settings.Second = time.Minute // no timeout ends during the replay
			}
			if base == "30-auth" {
				settings.Username, settings.Password, settings.LocalToo = "scott", "tiger", true
			}
			r := &replay{T: t, server: New(settings), ids: map[string]string{}}
			defer r.server.Close()
			stop := r.call()
			defer stop()
			exchanges, err := capture.Read(name)
			require.NoError(t, err)
			for _, e := range exchanges {
				if r.playable(e) {
					r.compare(e, shapes)
					compared++
				}
			}
		})
	}
	assert.Equal(t, 207, compared)
}

// fast are settings with short times.
func fast() Settings {
	return Settings{
		Classes:  map[string][]string{"demo.Shop": {"<init>", "main", "buy", "check", "price", "save", "row", "loop"}, "demo.Shop$Order": {"<init>"}, "demo.Bench": {"f"}},
		PullWait: 8 * time.Millisecond, Gather: time.Millisecond, Second: time.Millisecond,
	}
}

// call makes the program call its methods until the returned function is called.
func (r *replay) call() (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		for i := int64(0); ; i++ {
			c := Call{Class: "demo.Shop", Method: "buy", Thread: "worker-1", ThreadID: 12, Cost: 20 * time.Millisecond, Children: []Call{
				{Class: "demo.Shop", Method: "check", Cost: time.Millisecond, Line: 7},
				{Class: "demo.Shop", Method: "save", Cost: 3 * time.Millisecond, Line: 7, Children: []Call{{Class: "demo.Shop", Method: "row", Cost: time.Millisecond, Line: 11}}},
			}}
			if i%5 == 0 {
				c.Throws, c.Message = "java.lang.IllegalStateException", "out of stock"
			}
			r.server.Call(c)
			r.server.Call(Call{Class: "demo.Bench", Method: "f", Cost: time.Nanosecond})
			select {
			case <-ticker.C:
			case <-done:
				return
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// playable reports whether the server has what a request asks for.
func (r *replay) playable(e capture.Exchange) bool {
	var body struct{ Action, Command string }
	if json.Unmarshal([]byte(strings.TrimPrefix(e.Request, "\ufeff")), &body) != nil || body.Command == "" {
		return !strings.HasSuffix(e.Request, "bytes body]") && !e.Cut
	}
	line := Parse(body.Command)
	if strings.Contains(body.Command, "nosuch.field") || strings.Contains(body.Command, "((") {
		return false // the server runs no expressions
	}
	if _, is := line.Options["-s"]; is && line.Command == "tt" || line.Command == "thread" ||
		line.Command == "profiler" && line.Arguments[0] != "execute" && line.Arguments[0] != "status" {
		return false // the server has one answer for all
	}
	return line.Unknown == "" && !e.Cut && (r.server.knows(line.Command) || line.Command == "nosuchcommand" || line.Command == "version;")
}

func (r *replay) compare(e capture.Exchange, shapes map[string]*shape) {
	body := e.Request
	for captured, own := range r.ids {
		body = strings.ReplaceAll(body, captured, own)
	}
	if strings.Contains(e.Answer, `"INTERRUPTED"`) {
		body = strings.ReplaceAll(body, `00}`, `}`) // the time until the server interrupts a command
	}
	request := httptest.NewRequest(e.Method, e.Path, strings.NewReader(body))
	if header := e.RequestHeader["authorization"]; header != "" {
		request.Header.Set("Authorization", header)
	}
	if cookie := e.RequestHeader["cookie"]; cookie != "" {
		request.Header.Set("Cookie", "asession="+r.ids["cookie"])
	}
	w := httptest.NewRecorder()
	r.server.ServeHTTP(w, request)
	if e.Status == 0 {
		assert.Empty(r, w.Body.String(), "the server closes the connection: %s", e.Request)
		return
	}
	assert.Equal(r, e.Status, w.Code, "%s", e.Request)
	if header := w.Header().Get("Set-Cookie"); strings.Contains(header, "=") {
		_, r.ids["cookie"], _ = strings.Cut(header, "=")
	}
	if !strings.HasPrefix(e.Answer, "{") {
		assert.Equal(r, strings.TrimSpace(e.Answer), strings.TrimSpace(w.Body.String()))
		return
	}
	want, got := object(r, e.Answer), object(r, w.Body.String())
	assert.Equal(r, keys(want), keys(got), "%s: %s", e.Request, w.Body)
	assert.Equal(r, want["state"], got["state"], "%s: %s", e.Request, w.Body)
	r.learn(want, got)
	if strings.Contains(e.Request, "async_exec") && strings.Contains(e.Request, "-n 1") {
		testkit.Eventually(r, "the end of the job", func() (bool, string) {
			_, jobs := r.server.Sessions()
			return jobs == 0, ""
		})
	}
	assert.Equal(r, r.message(want), r.message(got))
	wantBody, _ := want["body"].(map[string]any)
	gotBody, _ := got["body"].(map[string]any)
	assert.Equal(r, keys(wantBody), keys(gotBody), "%s: %s", e.Request, w.Body)
	for _, key := range []string{"command", "jobStatus", "timeExpired"} {
		assert.Equal(r, wantBody[key], gotBody[key], "%s", e.Request)
	}
	results, _ := gotBody["results"].([]any)
	for _, result := range results {
		kind := result.(map[string]any)["type"].(string)
		assert.Empty(r, shapes[kind].misfit(kind, result))
	}
}

// learn notes which ID of the server stands for which of the capture.
func (r *replay) learn(want, got map[string]any) {
	for _, key := range []string{"sessionId", "consumerId"} {
		if captured, is := want[key].(string); is {
			r.ids[captured] = fmt.Sprint(got[key])
		}
	}
}

// message returns the message of an answer, without IDs and without the words of a library.
func (r *replay) message(answer map[string]any) string {
	message, _ := answer["message"].(string)
	for captured, own := range r.ids {
		message = strings.ReplaceAll(message, captured, own)
	}
	if before, _, found := strings.Cut(message, "parse request failed: "); found && !strings.HasSuffix(message, "is empty") {
		return before
	}
	// A lock is held for the time of a request only: the next one meets the job.
	return strings.Replace(message, "Another command is executing.", "Another job is running.", 1)
}

func object(t testing.TB, text string) (o map[string]any) {
	require.NoError(t, json.Unmarshal([]byte(text), &o), text)
	return o
}

func keys(o map[string]any) []string { return slices.Sorted(maps.Keys(o)) }

// shape is the form of all values of one place: which types they have, and of objects, which keys are always there.
type shape struct {
	types    map[string]bool
	fields   map[string]*shape
	times    int
	seen     map[string]int
	elements *shape
}

func capturedShapes(t *testing.T, names []string) map[string]*shape {
	shapes := map[string]*shape{}
	for _, name := range names {
		exchanges, err := capture.Read(name)
		require.NoError(t, err)
		for _, e := range exchanges {
			if !strings.HasPrefix(e.Answer, "{") || e.Cut {
				continue
			}
			body, _ := object(t, e.Answer)["body"].(map[string]any)
			list, _ := body["results"].([]any)
			for _, result := range list {
				kind := result.(map[string]any)["type"].(string)
				if shapes[kind] == nil {
					shapes[kind] = newShape()
				}
				shapes[kind].add(result)
			}
		}
	}
	return shapes
}

func newShape() *shape {
	return &shape{types: map[string]bool{}, fields: map[string]*shape{}, seen: map[string]int{}}
}

func typeOf(value any) string { return fmt.Sprintf("%T", value) }

func (s *shape) add(value any) {
	s.types[typeOf(value)] = true
	s.times++
	switch v := value.(type) {
	case map[string]any:
		for key, field := range v {
			if s.fields[key] == nil {
				s.fields[key] = newShape()
			}
			s.seen[key]++
			s.fields[key].add(field)
		}
	case []any:
		if s.elements == nil {
			s.elements = newShape()
		}
		for _, element := range v {
			s.elements.add(element)
		}
	}
}

// misfit returns how a value differs from the captured ones.
func (s *shape) misfit(at string, value any) (misfits []string) {
	if s == nil {
		return []string{at + " is not in the captures"}
	}
	if !s.types[typeOf(value)] {
		return []string{fmt.Sprintf("%s is a %T", at, value)}
	}
	switch v := value.(type) {
	case map[string]any:
		for key, field := range v {
			misfits = append(misfits, s.fields[key].misfit(at+"."+key, field)...)
		}
		for key, times := range s.seen {
			// The kinds of memory and the groups of properties are keys too.
			isName := strings.HasSuffix(at, "Info") && !strings.HasSuffix(at, "methodInfo")
			if _, has := v[key]; !has && times == s.times && !isName {
				misfits = append(misfits, at+" has no "+key)
			}
		}
	case []any:
		for _, element := range v {
			misfits = append(misfits, s.elements.misfit(at+"[]", element)...)
		}
	}
	sort.Strings(misfits)
	return misfits
}
