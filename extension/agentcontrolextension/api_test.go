// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontrolextension

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.yaml.in/yaml/v3"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/agentcontrol/api"
)

// sumOf is the sum of a metric's points that have all of the values of attributes.
func sumOf(m metricdata.Metrics, values ...string) (sum int64) {
	for _, point := range m.Data.(metricdata.Sum[int64]).DataPoints {
		has := map[string]bool{}
		for _, kv := range point.Attributes.ToSlice() {
			has[kv.Value.AsString()] = true
		}
		if !slices.ContainsFunc(values, func(v string) bool { return !has[v] }) {
			sum += point.Value
		}
	}
	return sum
}

func TestTheDocumentIsServedAndNamesEveryReason(t *testing.T) {
	b := newBed(t)
	assert.Equal(t, string(api.Document), b.get("/v1/openapi.yaml"))
	var document struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct{ Enum []agentcontrol.Reason }
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(api.Document, &document))
	reasons := document.Components.Schemas["Problem"].Properties["reason"].Enum
	assert.ElementsMatch(t, slices.Collect(maps.Keys(problems)), reasons)
	// YAML 1.2, and so OpenAPI, has no merge keys: a strict reader sees a property of that name.
	assert.NotContains(t, string(api.Document), "<<")
}

func TestAgentsAreShownWhileTheyAreRegistered(t *testing.T) {
	b := newBed(t)
	assert.Empty(t, b.list())
	f := newFake("one")
	end := b.extension.Register(f)
	want := api.Agent{
		ID: f.id, Tracer: "bytefrog", Receiver: "bytefrog/shop", Service: "shop", Address: "127.0.0.1:1234",
		Process: &api.Process{PID: 42, Name: "java"}, State: "tracing",
		Since: timeOf(f.snapshot.Since), LastSeen: timeOf(f.snapshot.LastSeen),
		Commands: []string{"suspend", "stop", "enable"}, Counters: []api.Counter{{Name: "events", Unit: "{event}", Value: 12}},
	}
	assert.Equal(t, []api.Agent{want}, b.list())
	detail := decode[api.AgentDetail](t, b.get("/v1/agents/"+f.id))
	assert.Equal(t, want, detail.Agent)
	assert.Len(t, detail.Descriptions, 3)
	limit := detail.Descriptions[2].Parameters[2]
	assert.EqualValues(t, 10, *limit.Most)
	assert.Equal(t, "it is above <8>", limit.DisruptiveIf)
	assert.EqualValues(t, 1, b.counter("otelcol_extension_agent_control_agents", "bytefrog"))
	end()
	end()
	assert.Empty(t, b.list())
	assert.Zero(t, b.counter("otelcol_extension_agent_control_agents", "bytefrog"))
	response, _ := b.do(b.request(http.MethodGet, "/v1/agents/"+f.id, "", ""))
	assert.Equal(t, http.StatusNotFound, response.StatusCode)
}

func TestTheListReportsAllowDisruptive(t *testing.T) {
	for _, allow := range []bool{false, true} {
		b := newBed(t, func(c *Config) { c.AllowDisruptive = allow })
		assert.Equal(t, allow, decode[api.AgentList](t, b.get("/v1/agents")).AllowDisruptive)
	}
}

func TestTextsOfAgentsAreShownInPart(t *testing.T) {
	b := newBed(t)
	f := newFake("one")
	long := strings.Repeat("<", 2*maxText)
	f.snapshot.Service, f.snapshot.Address, f.snapshot.State, f.snapshot.Process.Name = long, long, long, long
	b.extension.Register(f)
	for most, a := range map[int]api.Agent{
		maxListed: b.list()[0], maxText: decode[api.AgentDetail](t, b.get("/v1/agents/"+f.id)).Agent,
	} {
		for _, text := range []string{a.Service, a.Address, a.State, a.Process.Name} {
			assert.Equal(t, long[:most], text)
		}
	}
	assert.Less(t, len(b.get("/v1/agents")), 4*maxListed+1000, "a character of them is no more than one in JSON")
}

func TestHeadIsAnsweredLikeGet(t *testing.T) {
	b := newBed(t)
	for _, path := range []string{"/", "/style.css", "/v1/openapi.yaml"} {
		r := b.request(http.MethodHead, path, "", "")
		response, err := b.client.Do(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, http.StatusOK, response.StatusCode, path)
	}
}

// A list of many agents for a slow client must not be held as one text.
func TestAListForASlowClientHoldsLittle(t *testing.T) {
	b := newBed(t)
	for i := range 1000 {
		f := newFake(fmt.Sprint(i))
		f.snapshot.Service = strings.Repeat("x", maxText)
		b.extension.Register(f)
	}
	w := &unread{ResponseRecorder: httptest.NewRecorder()}
	(&site{agentControl: b.extension}).listAgents(w, nil)
	assert.Less(t, w.most, 16*kib, "bytes of one write")
	var list api.AgentList
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &list))
	assert.Len(t, list.Agents, 1000)
}

// unread is a response that records the largest write.
type unread struct {
	*httptest.ResponseRecorder
	most int
}

func (w *unread) Write(p []byte) (int, error) {
	w.most = max(w.most, len(p))
	return w.ResponseRecorder.Write(p)
}

func TestUnknownFieldsOfAnAgentAreOmitted(t *testing.T) {
	b := newBed(t)
	f := newFake("one")
	f.snapshot = agentcontrol.Snapshot{Tracer: "rbkit"}
	b.extension.Register(f)
	assert.Equal(t, []api.Agent{{ID: f.id, Tracer: "rbkit", Commands: []string{}, Counters: []api.Counter{}}}, b.list())
	status, _, p := b.order(f.id, `{"command":"suspend"}`)
	assert.Equal(t, http.StatusUnprocessableEntity, status)
	assert.Equal(t, "the agent has no commands", p.Detail)
}

func TestAnAgentExecutesACommandWithItsArguments(t *testing.T) {
	b := newBed(t)
	f := newFake("one")
	b.extension.Register(f)
	status, a, _ := b.order(f.id, `{"command":"enable","arguments":{"logger":"com.example","limit":5,"all":true}}`)
	assert.Equal(t, http.StatusOK, status)
	assert.Equal(t, "enable all=true limit=5 logger=com.example", a.Message)
	assert.Equal(t, f.id, a.Agent)
	require.Len(t, f.told(), 1)
	r := f.told()[0]
	assert.Equal(t, "done", r.Outcome())
	assert.Equal(t, "all=true limit=5 logger=com.example", r.Written)
	assert.Contains(t, r.Order.By, "127.0.0.1:")
	assert.Equal(t, f.id, r.Agent)
	assert.EqualValues(t, 1, b.counter("otelcol_extension_agent_control_commands", "bytefrog", "enable", "done"))
	assert.Equal(t, 1, b.said.FilterMessage("A command was sent to an agent: enable: done").Len())
}

func TestOrdersThatCannotBeUnderstoodAreRefused(t *testing.T) {
	b := newBed(t)
	f := newFake("one")
	b.extension.Register(f)
	f.do = func(context.Context, agentcontrol.Order) (agentcontrol.Answer, error) {
		assert.Fail(t, "the agent received a command")
		return agentcontrol.Answer{}, nil
	}
	for _, c := range []struct {
		name, body string
		status     int
		reason     string
	}{
		{"nothing", "", 400, "bad_request"},
		{"no JSON", "command=suspend", 400, "bad_request"},
		{"half", `{"command":"suspend"`, 400, "bad_request"},
		{"more than one", `{"command":"suspend"}{}`, 400, "bad_request"},
		{"no command", `{"arguments":{}}`, 400, "bad_request"},
		{"another field", `{"command":"suspend","agent":"x"}`, 400, "bad_request"},
		{"an argument that is a list", `{"command":"enable","arguments":{"logger":["x"]}}`, 400, "bad_request"},
		{"too large", `{"command":"` + strings.Repeat("x", 64<<10) + `"}`, 413, "bad_request"},
		{"an unknown command", `{"command":"reboot"}`, 422, "unknown_command"},
		{"a missing argument", `{"command":"enable"}`, 422, "bad_argument"},
		{"an unknown argument", `{"command":"suspend","arguments":{"now":true}}`, 422, "bad_argument"},
		{"an argument that is too long", `{"command":"enable","arguments":{"logger":"` + strings.Repeat("x", 1025) + `"}}`, 422, "bad_argument"},
		{"an argument with NUL", `{"command":"enable","arguments":{"logger":"a\u0000b"}}`, 422, "bad_argument"},
		{"none of the texts", `{"command":"enable","arguments":{"logger":"a","level":"LOUD"}}`, 422, "bad_argument"},
		{"a number out of bounds", `{"command":"enable","arguments":{"logger":"a","limit":11}}`, 422, "bad_argument"},
		{"no whole number", `{"command":"enable","arguments":{"logger":"a","limit":1.5}}`, 422, "bad_argument"},
		{"neither true nor false", `{"command":"enable","arguments":{"logger":"a","all":"perhaps"}}`, 422, "bad_argument"},
		{"a command that stops programs", `{"command":"stop"}`, 403, "not_allowed"},
		{"a command whose argument stops programs", `{"command":"enable","arguments":{"logger":"a","limit":9}}`, 403, "not_allowed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, reason := b.refusedOrder(f.id, c.body)
			assert.Equal(t, c.status, status)
			assert.Equal(t, c.reason, reason)
		})
	}
	status, reason := b.refusedOrder("0123456789abcdef", `{"command":"suspend"}`)
	assert.Equal(t, 404, status)
	assert.Equal(t, "not_found", reason)
	assert.Len(t, f.told(), 11, "only orders for an agent reach its receiver")
	assert.EqualValues(t, 1, b.counter("otelcol_extension_agent_control_commands", "unknown", "unknown_command"))
	assert.EqualValues(t, 1, b.counter("otelcol_extension_agent_control_commands", "stop", "not_allowed"))
}

func TestDisruptiveCommandsAreCarriedOutIfAllowed(t *testing.T) {
	b := newBed(t, disruptive)
	f := newFake("one")
	b.extension.Register(f)
	for _, order := range []string{`{"command":"stop"}`, `{"command":"enable","arguments":{"logger":"a","limit":9}}`} {
		status, _, _ := b.order(f.id, order)
		assert.Equal(t, http.StatusOK, status)
	}
}

func TestTheErrorOfAnArgumentNamesIt(t *testing.T) {
	b := newBed(t)
	f := newFake("one")
	b.extension.Register(f)
	_, _, p := b.order(f.id, `{"command":"enable","arguments":{"logger":"a","limit":10}}`)
	assert.Contains(t, p.Detail, "enable with limit=10 can stop or pause the traced program: set allow_disruptive")
	status, _, _ := b.order(f.id, `{"command":"enable","arguments":{"logger":"a","limit":8}}`)
	assert.Equal(t, http.StatusOK, status)
	status, _, _ = b.order(f.id, `{"command":"enable","arguments":{"logger":"a"}}`)
	assert.Equal(t, http.StatusOK, status)
}

func TestProblemsHaveTheReasonOfTheAgent(t *testing.T) {
	b := newBed(t)
	f := newFake("one")
	b.extension.Register(f)
	for reason, status := range map[agentcontrol.Reason]int{
		agentcontrol.NotNow: 409, agentcontrol.Refused: 409, agentcontrol.Lost: 502, agentcontrol.NoAnswer: 504,
	} {
		f.do = func(context.Context, agentcontrol.Order) (agentcontrol.Answer, error) {
			return agentcontrol.Answer{}, agentcontrol.Errorf(reason, "it said %q", "<b>no</b>")
		}
		got, _, p := b.order(f.id, `{"command":"suspend"}`)
		assert.Equal(t, status, got)
		assert.Equal(t, string(reason), p.Reason)
		assert.Contains(t, p.Detail, "no</b>")
		assert.EqualValues(t, 1, b.counter("otelcol_extension_agent_control_commands", "suspend", string(reason)))
	}
}

func TestOtherAddressesAndMethodsAreProblems(t *testing.T) {
	b := newBed(t)
	for _, c := range []struct {
		method, path, contentType string
		status                    int
	}{
		{http.MethodGet, "/v2/agents", "", 404},
		{http.MethodPost, "/v1/agents", api.TypeJSON, 405},
		{http.MethodDelete, "/v1/agents/x", "", 405},
		{http.MethodGet, "/v1/agents/x/commands", "", 405},
		{http.MethodGet, "/agents/x/commands", "", 405},
		{http.MethodGet, "/v1/agents?" + strings.Repeat("x", 2000), "", 414},
	} {
		response, _ := b.do(b.request(c.method, c.path, c.contentType, ""))
		assert.Equal(t, c.status, response.StatusCode, c.path)
		assert.Equal(t, api.TypeProblem, response.Header.Get("Content-Type"))
	}
}

// slow is an agent whose orders wait until the test releases them, or their context ends.
type slow struct {
	*fake
	mu          sync.Mutex
	atOnce, top int
	begun       chan struct{}
	release     chan struct{}
}

func newSlow(b *bed) *slow {
	s := &slow{fake: newFake("slow"), begun: make(chan struct{}, 100), release: make(chan struct{})}
	s.do = func(ctx context.Context, _ agentcontrol.Order) (agentcontrol.Answer, error) {
		s.count(1)
		defer s.count(-1)
		s.begun <- struct{}{}
		select {
		case <-s.release:
			return agentcontrol.Answer{Message: "at last"}, nil
		case <-ctx.Done():
			return agentcontrol.Answer{}, agentcontrol.Errorf(agentcontrol.NoAnswer, "no answer: %w", context.Cause(ctx))
		}
	}
	return s
}

func (s *slow) count(change int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.atOnce += change
	s.top = max(s.top, s.atOnce)
}

func TestAnAgentHasOneOrderAtATime(t *testing.T) {
	b := newBed(t, func(c *Config) { c.CommandTimeout = 25 * time.Second; c.Limits.MaxWaiting = 3 })
	s := newSlow(b)
	b.extension.Register(s)
	e := b.extension.find(s.id)
	var orders sync.WaitGroup
	for range 3 {
		orders.Go(func() {
			status, _, _ := b.order(s.id, `{"command":"suspend"}`)
			assert.Equal(t, http.StatusOK, status)
		})
	}
	<-s.begun
	b.await("all three to wait", func() bool { return e.turns.waiting.Load() == 3 })
	status, reason := b.refusedOrder(s.id, `{"command":"suspend"}`)
	assert.Equal(t, http.StatusServiceUnavailable, status)
	assert.Equal(t, "busy", reason)
	// Others are not held up.
	other := newFake("other")
	b.extension.Register(other)
	status, _, _ = b.order(other.id, `{"command":"suspend"}`)
	assert.Equal(t, http.StatusOK, status)
	close(s.release)
	orders.Wait()
	assert.Equal(t, 1, s.top)
	assert.Zero(t, e.turns.waiting.Load())
}

func TestAnOrderEndsWithCommandTimeout(t *testing.T) {
	b := newBed(t, func(c *Config) { c.CommandTimeout = 20 * time.Millisecond })
	s := newSlow(b)
	b.extension.Register(s)
	status, _, p := b.order(s.id, `{"command":"suspend"}`)
	assert.Equal(t, http.StatusGatewayTimeout, status)
	assert.Contains(t, p.Detail, "command_timeout (20ms) is over")
	assert.Equal(t, "no_answer", s.told()[0].Outcome())
}

func TestAWaitingOrderIsNotSentAfterItsTime(t *testing.T) {
	turns, q := newTurns(), queue{most: 2, places: make(chan struct{}, 1)}
	require.NoError(t, turns.begin(context.Background(), q, nil))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := turns.begin(ctx, q, nil)
	assert.Equal(t, agentcontrol.NoAnswer, agentcontrol.ReasonOf(err))
	assert.ErrorContains(t, err, "was not sent")
	gone := make(chan struct{})
	close(gone)
	err = turns.begin(context.Background(), q, gone)
	assert.Equal(t, agentcontrol.Lost, agentcontrol.ReasonOf(err))
	turns.end()
	q.most = 1
	require.NoError(t, turns.begin(context.Background(), q, nil))
}

// The agent is free, and the time is over: both can be chosen.
func TestAnOrderAfterItsTimeIsNotSentToAFreeAgent(t *testing.T) {
	turns, q := newTurns(), queue{most: 1}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range 100 {
		require.ErrorContains(t, turns.begin(ctx, q, nil), "was not sent")
	}
	require.NoError(t, turns.begin(context.Background(), q, nil), "none of them has it")
}

// Silent agents, each with as many orders as allowed, do not delay orders for other agents.
func TestSilentAgentsDoNotDelayOthers(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.CommandTimeout, c.Limits.MaxWaiting, c.Limits.MaxRequests = 25*time.Second, 3, 4
	})
	var orders sync.WaitGroup
	var dead []*slow
	const suspend = `{"command":"suspend"}`
	for i := range 3 {
		s := newSlow(b)
		s.id = fmt.Sprintf("%016x", i)
		b.extension.Register(s)
		dead = append(dead, s)
		for range 3 {
			orders.Go(func() { b.order(s.id, suspend) })
		}
		waits := int64(min(3, 1+4-2*i)) // of the last one's, one has no place
		b.await("all to wait", func() bool { return b.extension.find(s.id).turns.waiting.Load() == max(1, waits) })
	}
	b.await("two to be refused", func() bool { return b.counter("otelcol_extension_agent_control_commands", "busy") == 2 })
	other := newFake("other")
	b.extension.Register(other)
	status, reason := b.refusedOrder(other.id, suspend)
	assert.Equal(t, http.StatusOK, status, reason)
	response, body := b.do(b.request(http.MethodPost, "/v1/agents/"+dead[2].id+"/commands", api.TypeJSON, suspend))
	assert.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
	assert.Equal(t, "1", response.Header.Get("Retry-After"))
	assert.Contains(t, string(body), "limits.max_requests")
	for _, s := range dead {
		close(s.release)
	}
	orders.Wait()
	assert.Empty(t, b.extension.queue.places)
}

func TestAClientThatDisconnectsEndsItsOrder(t *testing.T) {
	b := newBed(t, func(c *Config) { c.CommandTimeout = 25 * time.Second })
	s := newSlow(b)
	b.extension.Register(s)
	ctx, leave := context.WithCancel(context.Background())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, err := b.client.Do(b.request(http.MethodPost, "/v1/agents/"+s.id+"/commands", api.TypeJSON, `{"command":"suspend"}`).WithContext(ctx))
		assert.Error(t, err)
	}()
	<-s.begun
	leave()
	<-gone
	b.await("the record of it", func() bool { return len(s.told()) == 1 })
	assert.Equal(t, "no_answer", s.told()[0].Outcome())
}

func TestAShutdownEndsRunningOrders(t *testing.T) {
	b := newBed(t, func(c *Config) { c.CommandTimeout = 25 * time.Second })
	s := newSlow(b)
	end := b.extension.Register(s)
	answered := make(chan string)
	go func() {
		_, _, p := b.order(s.id, `{"command":"suspend"}`)
		answered <- p.Reason + ": " + p.Detail
	}()
	<-s.begun
	assert.EqualValues(t, 1, b.counter("otelcol_extension_agent_control_agents", "bytefrog"))
	b.shutdown()
	assert.Equal(t, "no_answer: no answer: the collector is shut down", <-answered)
	assert.Zero(t, b.counter("otelcol_extension_agent_control_agents", "bytefrog"), "none is shown any more")
	// Receivers may end later, and begin.
	b.extension.Register(newFake("late"))()
	end()
	b.shutdown()
}

func TestTwoAgentsWithOneIDAreAMistake(t *testing.T) {
	b := newBed(t)
	first, second := newFake("one"), newFake("one")
	second.snapshot.Service = "other"
	b.extension.Register(first)
	end := b.extension.Register(second)
	require.Len(t, b.list(), 1)
	assert.Equal(t, "shop", b.list()[0].Service)
	end()
	assert.Len(t, b.list(), 1, "the first is still there")
	assert.EqualValues(t, 1, b.counter("otelcol_extension_agent_control_agents_not_shown", notShownDuplicate))
	assert.Equal(t, 1, b.said.FilterMessage("An agent is not shown").Len())
}

func TestTheNumberOfAgentsIsBounded(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Limits.MaxAgents = 2 })
	var ends []func()
	for i := range 4 {
		ends = append(ends, b.extension.Register(newFake(fmt.Sprint(i))))
	}
	assert.Len(t, b.list(), 2)
	assert.EqualValues(t, 2, b.counter("otelcol_extension_agent_control_agents_not_shown", notShownMaxAgents))
	ends[2]() // a waiting one
	ends[0]()
	assert.Len(t, b.list(), 2)
	assert.NotNil(t, b.extension.find(newFake("3").id), "a waiting agent is shown when there is room")
	for _, end := range ends {
		end()
	}
	assert.Empty(t, b.list())
	b.extension.Register(newFake("more"))
	assert.Len(t, b.list(), 1)
	assert.EqualValues(t, 1, b.counter("otelcol_extension_agent_control_agents", "bytefrog"))
}

func TestNoAgentIsShownAfterAShutdownThoughItWaited(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Limits.MaxAgents = 1 })
	first := b.extension.Register(newFake("one"))
	waits := b.extension.Register(newFake("two"))
	b.shutdown()
	first()
	waits()
	assert.Zero(t, b.counter("otelcol_extension_agent_control_agents", "bytefrog"))
}

func TestAThousandAgentsAreListedWhileSomeRegisterAndEnd(t *testing.T) {
	b := newBed(t)
	var work sync.WaitGroup
	for i := range 1000 {
		f := newFake(fmt.Sprint(i))
		f.snapshot.Address = fmt.Sprintf("127.0.0.1:%d", i)
		end := b.extension.Register(f)
		if i%10 == 0 {
			work.Go(func() {
				end()
				b.extension.Register(f)
			})
		}
		if i%20 == 1 {
			work.Go(func() {
				status, _, _ := b.order(f.id, `{"command":"suspend"}`)
				assert.Contains(t, []int{http.StatusOK, http.StatusServiceUnavailable}, status)
			})
		}
	}
	for range 5 {
		work.Go(func() { b.list() })
	}
	work.Wait()
	all := b.list()
	assert.Len(t, all, 1000)
	assert.True(t, slices.IsSortedFunc(all, func(x, y api.Agent) int { return strings.Compare(x.Address, y.Address) }))
	assert.Contains(t, b.get("/"), "1 to 200 of 1000")
	assert.Contains(t, b.get("/?page=5"), "801 to 1000 of 1000")
}

func TestAClientThatNeverReadsDelaysNoAgent(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Limits.MaxRequests = 1 })
	for i := range 10_000 {
		f := newFake(fmt.Sprint(i))
		f.snapshot.Service, f.snapshot.State = strings.Repeat("x", maxText), strings.Repeat("y", maxText)
		b.extension.Register(f)
	}
	conn, err := net.Dial("tcp", b.extension.address.String())
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.(*net.TCPConn).SetReadBuffer(4096))
	_, err = fmt.Fprintf(conn, "GET /v1/agents HTTP/1.1\r\nHost: localhost\r\n\r\n")
	require.NoError(t, err)
	// The only place for requests is in use, until write_timeout is over or the client is gone.
	look := func(want int) func() bool {
		return func() bool {
			response, _ := b.do(b.request(http.MethodGet, "/v1/agents/"+newFake("0").id, "", ""))
			return response.StatusCode == want
		}
	}
	b.await("requests to be refused", look(http.StatusServiceUnavailable))
	again, _ := b.do(b.request(http.MethodGet, "/", "", ""))
	assert.Equal(t, "1", again.Header.Get("Retry-After"))
	assert.NotZero(t, b.counter("otelcol_extension_agent_control_requests_busy"))
	// Agents and commands are none of its business.
	b.extension.Register(newFake("more"))()
	status, _, _ := b.order(newFake("0").id, `{"command":"suspend"}`)
	assert.Equal(t, http.StatusOK, status)
	require.NoError(t, conn.Close())
	b.await("room for another request", look(http.StatusOK))
	assert.Equal(t, b.extension.config.WriteTimeout, b.extension.server.WriteTimeout)
}

func TestAnEndpointInUseIsAnError(t *testing.T) {
	b := newBed(t)
	other := unstartedBed(t, func(c *Config) { c.NetAddr.Endpoint = b.extension.address.String() })
	err := other.extension.Start(context.Background(), componenttest.NewNopHost())
	assert.ErrorContains(t, err, "serve agent_control on endpoint "+b.extension.address.String())
	other.shutdown()
}

func TestTheItemsOfAnAnswerAreBounded(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Limits.MaxItems = 2 })
	f := newFake("one")
	b.extension.Register(f)
	f.do = func(context.Context, agentcontrol.Order) (agentcontrol.Answer, error) {
		return agentcontrol.Answer{Items: []string{"a", strings.Repeat("b", 2*maxText), "c"}, Details: []agentcontrol.Detail{{Name: "n", Value: "\xff"}}}, nil
	}
	_, a, _ := b.order(f.id, `{"command":"suspend"}`)
	assert.Equal(t, []string{"a", strings.Repeat("b", maxText)}, a.Items)
	assert.Equal(t, 1, a.MoreItems)
	assert.Equal(t, []api.Detail{{Name: "n", Value: ""}}, a.Details)
}
