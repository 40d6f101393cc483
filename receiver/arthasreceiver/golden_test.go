// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasreceiver

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/arthas/sim/capture"
	"github.com/callbraid/callbraid/internal/testkit/goldenfiles"
)

// replayed is a server with the answers of captures of a real one. One command runs in it.
type replayed struct {
	// opened, started and executed are answers: to init_session, to async_exec, and to exec by command.
	opened, started string
	executed        map[string]string
	// welcome is the first page of results, and results the second one. The end of the command is in it if it ends by itself.
	welcome string

	mu          sync.Mutex
	results     []json.RawMessage
	greeted     bool
	interrupted chan struct{}
}

// page is the answer to a poll, or a part of it.
type page struct {
	Body struct {
		Results []json.RawMessage `json:"results"`
	} `json:"body"`
	State string `json:"state"`
}

// isOf reports whether a result has a type.
func isOf(result json.RawMessage, kind string) bool {
	var of struct{ Type string }
	return json.Unmarshal(result, &of) == nil && of.Type == kind
}

// replay returns the address of a server that has the command of a capture. ends means that the command ends by itself.
func replay(t *testing.T, name string, ends bool) string {
	t.Helper()
	r := &replayed{executed: map[string]string{}, interrupted: make(chan struct{})}
	for _, file := range []string{"13-jvm-memory-sysprop-vmoption-mbean-perfcounter", "14-dashboard-i1000-n3", "60-left-enhanced", name} {
		exchanges, err := capture.Read(filepath.Join("..", "..", "testdata", "arthas", file+".txt"))
		require.NoError(t, err)
		for _, e := range exchanges {
			r.learn(t, e, file == name, ends)
		}
	}
	listening := httptest.NewServer(r)
	t.Cleanup(listening.Close)
	return listening.URL
}

// learn adds an exchange of a capture. Sessions are those of the replayed capture.
func (r *replayed) learn(t *testing.T, e capture.Exchange, isReplayed, ends bool) {
	var request struct{ Action, Command string }
	if json.Unmarshal([]byte(e.Request), &request) != nil {
		return
	}
	word, _, _ := strings.Cut(request.Command, " ")
	switch {
	case request.Action == "exec":
		if _, known := r.executed[word]; !known {
			r.executed[word] = e.Answer
		}
	case !isReplayed:
	case request.Action == "init_session":
		r.opened = e.Answer
	case request.Action == "async_exec":
		r.started = e.Answer
	case request.Action == "pull_results" && r.welcome == "":
		r.welcome = e.Answer
	case request.Action == "pull_results":
		var of page
		require.NoError(t, json.Unmarshal([]byte(e.Answer), &of))
		for _, result := range of.Body.Results {
			if ends || !isOf(result, "status") {
				r.results = append(r.results, result)
			}
		}
	}
}

// zone is an hour ahead of UTC. The captures have local times, and their sessions no instant.
const zone = time.Hour

// gather is the time that the real server waits after the first result. No call of the captures takes as long.
const gather = 100 * time.Millisecond

// ServeHTTP answers as the captured server.
func (r *replayed) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var of struct{ Action, Command string }
	body, _ := io.ReadAll(request.Body) // an incomplete request has no action
	_ = json.Unmarshal(body, &of)
	answer := `{"state":"SUCCEEDED"}`
	switch of.Action {
	case "init_session":
		answer = r.opened
	case "async_exec":
		answer = r.started
	case "session_info":
		_, text, _ := strings.Cut(r.welcome, `"time":"`)
		text, _, _ = strings.Cut(text, `"`)
		local, _ := time.Parse("2006-01-02 15:04:05.000", text) // a wrong time makes wrong golden files
		answer = fmt.Sprintf(`{"state":"SUCCEEDED","body":{"createTime":%d}}`, local.Add(-zone).UnixMilli())
	case "exec":
		word, _, _ := strings.Cut(of.Command, " ")
		if answer = r.executed[word]; strings.HasPrefix(of.Command, "tt -d") {
			answer = `{"state":"SUCCEEDED","body":{"results":[{"type":"status","jobId":0,"statusCode":0}]}}`
		}
	case "interrupt_job":
		close(r.interrupted)
		answer = r.started
	case "pull_results":
		answer = r.pull()
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = io.WriteString(w, answer) // the client reports an error
}

// pull returns the next page.
func (r *replayed) pull() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.greeted {
		r.greeted = true
		return r.welcome
	}
	of := page{State: "SUCCEEDED"}
	of.Body.Results, r.results = append([]json.RawMessage{}, r.results...), nil
	select {
	case <-r.interrupted:
		var started struct {
			Body struct {
				JobID int `json:"jobId"`
			} `json:"body"`
		}
		_ = json.Unmarshal([]byte(r.started), &started) // a wrong job leaves the command without an end
		of.Body.Results = append(of.Body.Results, json.RawMessage(fmt.Sprintf(`{"type":"status","jobId":%d,"statusCode":0}`, started.Body.JobID)))
	case <-time.After(gather):
	}
	answer, _ := json.Marshal(of) // it was JSON
	return string(answer)
}

// receivedAt is the time of the receiver.
var receivedAt = time.Date(2026, 11, 22, 18, 40, 0, 0, time.UTC)

// testdata/golden/README.md explains the files. This writes them: go test -run Golden -update.
func TestGoldenCaptures(t *testing.T) {
	for name, test := range map[string]struct {
		capture string
		ends    bool
		set     func(*Config)
		records map[string]int
		spans   int
		// metric is a metric that the capture has.
		metric string
	}{
		"monitor": {capture: "02-monitor-c5", metric: "java.method.calls", set: func(c *Config) { c.Monitors = []MonitorConfig{{TargetConfig: shop, Cycle: 5 * time.Second}} }},
		"idle":    {capture: "27-monitor-zero-windows", metric: "java.method.calls", set: func(c *Config) { c.Monitors = []MonitorConfig{{TargetConfig: shop, Cycle: time.Second}} }},
		"trace":   {capture: "04-trace-nested-exception-threads", ends: true, spans: 44, set: func(c *Config) { c.Traces = []TraceConfig{{CallsConfig: CallsConfig{TargetConfig: shop, Limit: 12}}} }},
		"stack": {capture: "07-stack", ends: true, records: map[string]int{"arthas.stack": 2}, set: func(c *Config) {
			c.Stacks = []CallsConfig{{TargetConfig: on("demo.Shop", "row"), Limit: 2}}
		}},
		"watch": {capture: "08-watch-x2", ends: true, records: map[string]int{"arthas.watch": 6}, set: func(c *Config) {
			c.Watches = []WatchConfig{{CallsConfig: CallsConfig{TargetConfig: shop, Limit: 6}, Expression: "{params,target,returnObj,throwExp}", Depth: 2}}
		}},
		"tt":  {capture: "10-tt-t-l-i", ends: true, records: map[string]int{"arthas.record": 6}, set: func(c *Config) { c.Records = []RecordsConfig{{CallsConfig: CallsConfig{TargetConfig: shop, Limit: 6}}} }},
		"jvm": {capture: "14-dashboard-i1000-n3", metric: "jvm.memory.used", set: func(c *Config) { c.JVM.Interval = time.Hour }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, nil, replay(t, test.capture, test.ends), test.set)
			b.receiver.env.config.ResourceAttributes = map[string]any{"service.instance.id": "shop.example:8563"}
			b.receiver.env.Now = func() time.Time { return receivedAt }
			b.Start()
			b.Await("the results of the capture", func() bool {
				for event, n := range test.records {
					if len(b.Records(event)) < n {
						return false
					}
				}
				return len(b.Spans()) >= test.spans && (test.metric == "" || len(b.points(test.metric)) > 0)
			})
			metrics := b.receiver.env.metrics.metrics(b.receiver.living(), receivedAt)
			b.Shutdown()
			folder := filepath.Join("testdata", "golden", name)
			goldenfiles.Compare(t, folder, b.Traces.AllTraces(), b.Logs.AllLogs())
			if test.metric != "" {
				goldenfiles.CompareMetrics(t, folder, metrics)
			}
		})
	}
}
