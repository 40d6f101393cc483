// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasserver

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/testkit"
)

// played is a server for a test.
type played struct {
	*Server
	t *testing.T
}

func play(t *testing.T, settings Settings) *played {
	t.Helper()
	p := &played{New(settings), t}
	t.Cleanup(p.Close)
	return p
}

// send sends a request with the fields of a JSON object, and returns the answer.
func (p *played) send(format string, a ...any) map[string]any {
	p.t.Helper()
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequest("POST", "/api", strings.NewReader(fmt.Sprintf("{"+format+"}", a...))))
	return object(p.t, w.Body.String())
}

// open returns the fields that name a new session.
func (p *played) open() (session, consumer string) {
	answer := p.send(`"action":"init_session"`)
	return fmt.Sprintf(`"sessionId":%q`, answer["sessionId"]), fmt.Sprintf(`"sessionId":%q,"consumerId":%q`, answer["sessionId"], answer["consumerId"])
}

func resultsOf(answer map[string]any) []any {
	body, _ := answer["body"].(map[string]any)
	list, _ := body["results"].([]any)
	return list
}

func classCount(answer map[string]any) any {
	return resultsOf(answer)[0].(map[string]any)["affect"].(map[string]any)["classCount"]
}

func TestAResetDuringAJobLeavesTheClassInstrumented(t *testing.T) {
	p := play(t, fast())
	session, _ := p.open()
	p.send(`"action":"async_exec",%s,"command":"monitor -c 5 demo.Shop buy"`, session)
	assert.Equal(t, []string{"demo.Shop"}, p.Instrumented())
	assert.EqualValues(t, 1, classCount(p.send(`"action":"exec","command":"reset"`)))
	assert.Equal(t, []string{"demo.Shop"}, p.Instrumented())
	p.send(`"action":"interrupt_job",%s`, session)
	assert.EqualValues(t, 0, classCount(p.send(`"action":"exec","command":"reset"`)))
	assert.Equal(t, []string{"demo.Shop"}, p.Instrumented(), "no reset knows the class")

	p.send(`"action":"async_exec",%s,"command":"monitor -c 5 demo.Shop buy"`, session)
	p.send(`"action":"close_session",%s`, session)
	assert.EqualValues(t, 1, classCount(p.send(`"action":"exec","command":"reset"`)))
	assert.Empty(t, p.Instrumented(), "a reset after the job restores it")
}

func TestAFullQueueDropsItsOldestResults(t *testing.T) {
	p := play(t, fast())
	session, consumer := p.open()
	p.send(`"action":"async_exec",%s,"command":"watch -n 1000 demo.Shop buy"`, session)
	for i := range 60 {
		p.Call(Call{Class: "demo.Shop", Method: "buy", Cost: time.Duration(i) * time.Millisecond})
	}
	var costs []any
	for len(costs) < queueLength {
		page := resultsOf(p.send(`"action":"pull_results",%s`, consumer))
		assert.LessOrEqual(t, len(page), pageLength)
		for _, result := range page {
			costs = append(costs, result.(map[string]any)["cost"])
		}
	}
	assert.EqualValues(t, 10, costs[0])
	assert.EqualValues(t, 59, costs[queueLength-1])
}

func TestAJobThatNoClientPullsIsInterrupted(t *testing.T) {
	now := time.Unix(1795376245, 0)
	settings := fast()
	settings.Now = func() time.Time { return now }
	p := play(t, settings)
	session, consumer := p.open()
	p.send(`"action":"async_exec",%s,"command":"watch -n 1000 demo.Shop buy"`, session)
	for range 60 {
		p.Call(Call{Class: "demo.Shop", Method: "buy"})
	}
	_, jobs := p.Sessions()
	assert.Equal(t, 1, jobs, "less than a second has passed")
	now = now.Add(time.Second)
	p.Call(Call{Class: "demo.Shop", Method: "buy"})
	_, jobs = p.Sessions()
	assert.Zero(t, jobs)
	var last []any
	for {
		page := resultsOf(p.send(`"action":"pull_results",%s`, consumer))
		if len(page) == 0 {
			break
		}
		last = page
	}
	assert.Equal(t, "all consumers are unhealthy, current job was interrupted.", last[len(last)-1].(map[string]any)["message"])
	assert.Equal(t, "ALLOW_INPUT", last[len(last)-2].(map[string]any)["inputStatus"])
}

func TestIdleQueuesAndSessionsAreRemoved(t *testing.T) {
	now := time.Unix(1795376245, 0)
	settings := fast()
	settings.Now = func() time.Time { return now }
	p := play(t, settings)
	idle, _ := p.open()
	busy, consumer := p.open()
	p.send(`"action":"async_exec",%s,"command":"watch -n 1000 demo.Shop buy"`, busy)
	now = now.Add(4 * time.Hour)
	p.EvictConsumers(5*time.Minute, 3*time.Hour)
	assert.Contains(t, p.send(`"action":"session_info",%s`, idle)["message"], "session not found")
	assert.Contains(t, p.send(`"action":"pull_results",%s`, consumer)["message"], "consumer not found")
	p.Call(Call{Class: "demo.Shop", Method: "buy"})
	joined := p.send(`"action":"join_session",%s`, busy)
	page := resultsOf(p.send(`"action":"pull_results",%s,"consumerId":%q`, busy, joined["consumerId"]))
	assert.Equal(t, "DISABLED", page[0].(map[string]any)["inputStatus"])
	assert.Equal(t, "watch", page[len(page)-2].(map[string]any)["type"])
	assert.Equal(t, "ALLOW_INTERRUPT", page[len(page)-1].(map[string]any)["inputStatus"])
}

func TestPullsBlockTheEventLoops(t *testing.T) {
	settings := fast()
	settings.Loops, settings.PullWait = 2, 50*time.Millisecond
	p := play(t, settings)
	var pulls sync.WaitGroup
	begin := time.Now()
	for range 4 {
		_, consumer := p.open()
		p.send(`"action":"pull_results",%s`, consumer)
		pulls.Go(func() { p.send(`"action":"pull_results",%s`, consumer) })
	}
	testkit.Eventually(t, "open pulls", func() (bool, string) {
		requests, _ := p.Requests()
		return requests["pull_results"] >= 6, ""
	})
	pulls.Wait()
	assert.GreaterOrEqual(t, time.Since(begin), 2*settings.PullWait)
	_, most := p.Requests()
	assert.Equal(t, 2, most)
}

func TestLocalConnectionsNeedNoPassword(t *testing.T) {
	settings := fast()
	settings.Username, settings.Password = "scott", "tiger"
	p := play(t, settings)
	for _, tt := range []struct {
		from, password string
		status         int
	}{
		{"127.0.0.1:5", "", 200}, {"127.0.0.1:5", "tiger", 200}, {"127.0.0.1:5", "wrong", 401}, {"192.0.2.1:5", "", 401}, {"192.0.2.1:5", "tiger", 200},
	} {
		r := httptest.NewRequest("POST", "/api", strings.NewReader(`{"action":"exec","command":"version"}`))
		r.RemoteAddr = tt.from
		if tt.password != "" {
			r.SetBasicAuth("scott", tt.password)
		}
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)
		assert.Equal(t, tt.status, w.Code, "%+v", tt)
	}
}

func TestTokensOfALine(t *testing.T) {
	for line, tokens := range map[string][]string{
		"": nil, "  a\tb ": {"a", "b"}, `'a b'c`: {"a bc"}, `a'b'\''c'`: {"ab'c"}, `"a\"b\n"`: {`a"b\n`}, `a\ b`: {"a b"}, `''`: {""},
		"a|": {"a", "|"}, "|a": {"|", "a"}, `'a|'`: {"a", "|"}, "a|b": {"a|b"}, "|": {"|"}, "'é 名'": {"é 名"},
	} {
		assert.Equal(t, tokens, Tokens(line), "%q", line)
	}
}

func TestLinesAreUnderstoodAsTheRealServerDoes(t *testing.T) {
	assert.Equal(t, Line{Command: "version", Options: map[string]string{}, Redirected: "/tmp/x"}, Parse("version '>' /tmp/x"))
	assert.Equal(t, Line{Command: "version", Options: map[string]string{}, Piped: true}, Parse("version | grep 4"))
	assert.Equal(t, Line{Command: "trace", Options: map[string]string{"-n": "5", "-E": ""}, Arguments: []string{"a", "-b"}}, Parse("trace a -n 5 -E -- -b"))
	assert.Equal(t, Line{Command: "trace", Options: map[string]string{}, Arguments: []string{"a"}, Background: true}, Parse("trace a &"))
	assert.Equal(t, "-q", Parse("trace -q a").Unknown)
	require.Empty(t, Parse("&").Command)
}

// A traced method that another traced method calls has its body below its call site, and no tree of its own.
func TestNestedTracedMethodsAreOneTree(t *testing.T) {
	p := play(t, fast())
	session, consumer := p.open()
	p.send(`"action":"async_exec",%s,"command":"trace -n 1 demo.* *"`, session)
	row := Call{Class: "demo.Shop", Method: "row", Line: 9, Cost: 2}
	p.Call(Call{Class: "demo.Shop", Method: "buy", Cost: 10, Children: []Call{row, row, {Class: "other.Pay", Method: "charge", Line: 10, Cost: 1}}})
	var tree map[string]any
	for _, r := range resultsOf(p.send(`"action":"pull_results",%s`, consumer)) {
		if result := r.(map[string]any); result["type"] == "trace" {
			tree = result
		}
	}
	require.NotNil(t, tree)
	assert.EqualValues(t, 4, tree["nodeCount"])
	text := fmt.Sprint(tree["root"])
	assert.Equal(t, 2, strings.Count(text, "methodName:row"))
	assert.Equal(t, 2, strings.Count(text, "times:2 totalCost:4"))
	assert.Equal(t, 1, strings.Count(text, "methodName:charge"))
}

func TestTheTruthHasReceivedAndDroppedResults(t *testing.T) {
	p := play(t, fast())
	session, consumer := p.open()
	p.send(`"action":"async_exec",%s,"command":"watch -n 1000 demo.Shop buy"`, session)
	p.Inject("pull_results", FaultCut)
	for range 60 {
		p.Call(Call{Class: "demo.Shop", Method: "buy", Throws: "X"})
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequest("POST", "/api", strings.NewReader("{"+fmt.Sprintf(`"action":"pull_results",%s`, consumer)+"}")))
	p.send(`"action":"pull_results",%s`, consumer)
	p.Restart()
	lives := p.Lives()
	require.Len(t, lives, 2)
	assert.Equal(t, Count{Calls: 60, Failed: 60}, lives[0].Made["demo.Shop.buy"])
	assert.EqualValues(t, pageLength, lives[0].Watches, "the first answer was cut")
	assert.EqualValues(t, 1, lives[0].Sessions)
	assert.EqualValues(t, 1, lives[0].Enhanced)
	assert.Positive(t, lives[0].Dropped)
	assert.Equal(t, lives[0].ProcessID+1, lives[1].ProcessID)
	assert.Zero(t, lives[1].Made.Sum())
}

func TestFaultsHappenByTurns(t *testing.T) {
	settings := fast()
	settings.Faults, settings.FaultEvery, settings.FaultTimes = []Fault{FaultEvict, FaultInterrupt, FaultExpire}, 4, 3
	p := play(t, settings)
	session, consumer := p.open()
	p.send(`"action":"async_exec",%s,"command":"watch -n 1000 demo.Shop buy"`, session)
	p.send(`"action":"pull_results",%s`, consumer)
	p.send(`"action":"session_info",%s`, session) // the fourth answer
	assert.Contains(t, p.send(`"action":"pull_results",%s`, consumer)["message"], "consumer not found")
	_, jobs := p.Sessions()
	assert.Equal(t, 1, jobs)
	for range 3 {
		p.send(`"action":"session_info",%s`, session)
	}
	_, jobs = p.Sessions()
	assert.Zero(t, jobs)
	for range 4 {
		p.send(`"action":"session_info",%s`, session)
	}
	assert.Contains(t, p.send(`"action":"session_info",%s`, session)["message"], "session not found")
	session, _ = p.open()
	for range 8 {
		assert.Equal(t, "SUCCEEDED", p.send(`"action":"session_info",%s`, session)["state"], "no fault is left")
	}
}

func TestEachFaultHasAName(t *testing.T) {
	for i, name := range Names() {
		fault, err := ParseFault(name)
		require.NoError(t, err)
		assert.Equal(t, Fault(i+1), fault)
	}
	_, err := ParseFault("")
	require.ErrorContains(t, err, `expected one of ["close"`)
}
