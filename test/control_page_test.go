// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/agentcontrol/api"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/load"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/test/kit/browser"
)

// The page of agents in a browser, as a person uses it.

// runAgent runs a simulated agent until the test stops it, and returns its result.
func runAgent(t *testing.T, endpoint string, rate float64) (*bytefrogagent.Agent, <-chan bytefrogagent.Result) {
	t.Helper()
	program, err := load.New(load.Options{Rate: rate})
	require.NoError(t, err)
	agent := bytefrogagent.New(bytefrogagent.Options{Endpoint: endpoint, ConnectTimeout: testkit.Patience, StartTimeout: testkit.Patience}, program)
	results := make(chan bytefrogagent.Result, 1)
	go func() { results <- agent.Run(t.Context()) }()
	t.Cleanup(agent.Stop)
	return agent, results
}

// buttonsShown are the commands of the buttons that can be clicked.
func buttonsShown(t testing.TB, b *browser.Browser) string {
	t.Helper()
	return evaluate[string](t, b, `Array.from(document.querySelectorAll("button[name=command]:not(:disabled)")).map(e => e.value).join(" ")`)
}

func awaitButtons(t testing.TB, b *browser.Browser, want string) {
	t.Helper()
	testkit.Eventually(t, "the buttons "+want, func() (bool, string) {
		got := buttonsShown(t, b)
		return got == want, got
	})
}

// awaitCurrent waits until the page shows no note that it is not current, as on a busy machine.
func awaitCurrent(t testing.TB, b *browser.Browser) {
	t.Helper()
	awaitScript(t, b, "the page is current", `document.getElementById("stale").hidden`)
}

// markPage sets a mark that a reload of the page would remove.
func markPage(t testing.TB, b *browser.Browser) {
	t.Helper()
	b.Do(t, chromedp.Evaluate[chromedp.Void](`window.notReloaded = true`))
}

func assertNotReloaded(t testing.TB, b *browser.Browser) {
	t.Helper()
	assert.True(t, evaluate[bool](t, b, `window.notReloaded === true`), "the page was reloaded")
}

// Agents connect, change their state and leave, and the page shows it by itself. The buttons fit the state.
func TestThePageOfAgentsKeepsItselfCurrent(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	endpoint := testkit.Address(t)
	c, client := startControlled(t, "allow_disruptive: true", controlledPipeline(endpoint, "service_name: shop, agent: {heartbeat_interval: 100ms}", "", "nop: {}"))
	b.Open(t, client.Endpoint)
	assert.Contains(t, textOf(t, b, "body"), "No agent is connected")
	markPage(t, b)
	agent, results := runAgent(t, endpoint, 1000)
	awaitButtons(t, b, "suspend pause stop")
	id := awaitAgents(t, client, 1)[0].ID
	assert.Equal(t, "tracing", textOf(t, b, ".state"))
	assert.Contains(t, textOf(t, b, "main"), "shop")
	b.Do(t, chromedp.Evaluate[chromedp.Void](`document.querySelector("details").open = true`))
	assert.Contains(t, textOf(t, b, "details"), "Halt the traced program until unpause")
	awaitCurrent(t, b)
	b.Picture(t, "agents")

	for _, step := range []struct{ command, state, buttons string }{
		{"suspend", "suspended", "unsuspend stop"}, {"unsuspend", "tracing", "suspend pause stop"},
		{"pause", "paused", "suspend unpause stop"}, {"unpause", "tracing", "suspend pause stop"},
	} {
		mustOrder(t, client, id, step.command)
		awaitButtons(t, b, step.buttons)
		awaitScript(t, b, step.state, fmt.Sprintf(`document.querySelector(".state").innerText == %q`, step.state))
	}
	assert.True(t, evaluate[bool](t, b, `document.querySelector("details").open`), "details that a person opened stay open")
	agent.Stop()
	await(t, results)
	awaitScript(t, b, "the agent is gone", `document.body.innerText.includes("No agent is connected")`)
	assertNotReloaded(t, b)
	assert.Empty(t, b.Errors())
	assertAllFrom(t, client.Endpoint, b.Requests())

	// A page in the background sends no request, and is current when a person looks at it again.
	show := func(hidden bool) {
		b.Do(t, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(
			`Object.defineProperty(document, "hidden", {value: %t, configurable: true}); document.dispatchEvent(new Event("visibilitychange")); window.since = performance.now()`, hidden)))
	}
	show(true)
	before := 0
	testkit.Eventually(t, "the last request is over", func() (bool, string) {
		before = len(b.Requests())
		return evaluate[bool](t, b, `performance.now() > window.since + 1000`), ""
	})
	awaitScript(t, b, "three of the longest intervals are over", `performance.now() > window.since + 16000`)
	assert.Len(t, b.Requests(), before, "a page in the background sent requests")
	_, results = runAgent(t, endpoint, 1000)
	awaitAgents(t, client, 1)
	show(false)
	awaitButtons(t, b, "suspend pause stop")

	c.Stop(t)
	awaitScript(t, b, "the page is not current", `!document.getElementById("stale").hidden`)
	assert.Contains(t, textOf(t, b, "#stale"), "the collector does not answer")
	assertNotReloaded(t, b)
	await(t, results)
}

// A visible page of an agent that does nothing costs one request in five seconds, without content.
func TestAnIdlePageOfAgentsIsSeldomRequested(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	_, client := startControlled(t, "", controlledPipeline(testkit.Address(t), "", "", "nop: {}"))
	b.Open(t, client.Endpoint)
	b.Do(t, chromedp.Evaluate[chromedp.Void](`window.since = performance.now()`))
	awaitScript(t, b, "half a minute is over", `performance.now() > window.since + 30000`)
	answers := evaluate[[]float64](t, b, `performance.getEntriesByType("resource").filter(e => e.initiatorType == "fetch").map(e => e.responseStatus)`)
	assert.GreaterOrEqual(t, len(answers), 4)
	assert.LessOrEqual(t, len(answers), 8)
	for _, status := range answers[1:] { // the first request has no tag yet
		assert.EqualValues(t, 304, status)
	}
}

// A command that stops or pauses the program asks before it is sent.
func TestACommandThatPausesAProgramAsksFirst(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	endpoint := testkit.Address(t)
	c, client := startControlled(t, "allow_disruptive: true", controlledPipeline(endpoint, "service_name: shop, agent: {heartbeat_interval: 100ms}", "", "nop: {}"))
	_, results := runAgent(t, endpoint, 1000)
	id := awaitAgents(t, client, 1)[0].ID
	b.Open(t, client.Endpoint+"/agents/"+id)
	awaitButtons(t, b, "suspend pause stop")
	red := evaluate[[]string](t, b, `Array.from(document.querySelectorAll("button.stops")).map(e => e.value)`)
	assert.Equal(t, []string{"pause", "stop"}, red)
	for _, want := range []string{"Not now: the program is not paused.", "This can stop or pause the program.", "Halt the traced program until unpause."} {
		assert.Contains(t, textOf(t, b, "main"), want)
	}
	awaitCurrent(t, b)
	b.Picture(t, "agent")
	b.Do(t, click("button", "pause"))
	require.Len(t, b.Questions(), 1)
	assert.Contains(t, b.Questions()[0], "Halt the traced program until unpause")
	shown, err := client.Agent(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, "tracing", shown.State, "the person declined")
	b.Accept(true)
	b.Leave(t, click("button", "pause"))
	assert.Equal(t, "the program is paused", textOf(t, b, "#message"))
	follow(t, b, "The agent")
	awaitButtons(t, b, "suspend unpause stop")
	b.Leave(t, click("button", "unpause"))
	assert.Len(t, b.Questions(), 2, "only commands that stop or pause the program ask")
	c.Stop(t)
	await(t, results)
}

// While the page of a server changes, a person fills in a form of it.
func TestAFormKeepsItsTextsWhileThePageChanges(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	server := newArthasServer(t)
	played := server.play(t, "--rate", "100")
	c, client := startControlled(t, "", fmt.Sprintf(`
receivers: {arthas: {service_name: shop, servers: [{endpoint: %q}], poll_interval: 50ms, collection_interval: 1s}}
exporters: {nop: {}}
service:
  extensions: [health_check, pprof, agent_control]
  pipelines: {logs: {receivers: [arthas], exporters: [nop]}, metrics: {receivers: [arthas], exporters: [nop]}}
`, server.url()))
	id := awaitAgents(t, client, 1)[0].ID
	b.Open(t, client.Endpoint)
	awaitScript(t, b, "it is connected", `document.querySelector(".state").innerText == "connected"`)
	follow(t, b, "watch …")
	assert.True(t, strings.HasSuffix(evaluate[string](t, b, `document.URL`), "/agents/"+id+"#command-watch"))
	markPage(t, b)
	const form = "#command-watch "
	b.Do(t, chromedp.SendKeys(chromedp.CSS(form+"[name='argument.class']"), "com.example.shop.Service2"))
	b.Do(t, chromedp.SendKeys(chromedp.CSS(form+"[name='argument.method']"), "*"))
	_, err := client.Order(t.Context(), id, api.Order{Command: "monitor", Arguments: map[string]any{"class": "com.example.*", "method": "*"}})
	require.NoError(t, err)
	awaitScript(t, b, "the page shows the command", `Array.from(document.querySelectorAll("tr")).some(e => e.innerText.replace(/\s+/g, " ").trim() == "commands running 1")`)
	assert.Equal(t, "com.example.shop.Service2", evaluate[string](t, b, `document.querySelector("`+form+`[name='argument.class']").value`))
	assert.Equal(t, "argument.method", evaluate[string](t, b, `document.activeElement.name`), "the focus stays")
	assertNotReloaded(t, b)
	b.Leave(t, chromedp.Click(chromedp.CSS(form+"button")))
	assert.Contains(t, textOf(t, b, "h1"), "Done: watch")
	c.Stop(t)
	played.stop()
	assert.Empty(t, b.Errors())
}

// The pages on a phone.
func TestThePagesOfAgentsFitAPhone(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	b.Phone(t)
	endpoint := testkit.Address(t)
	const long = "a-service-with-a-very-long-name-that-has-no-space-in-it-and-does-not-fit-into-one-line-of-a-phone"
	c, client := startControlled(t, "allow_disruptive: true", controlledPipeline(endpoint, "service_name: "+long+", agent: {heartbeat_interval: 100ms}", "", "nop: {}"))
	_, results := runAgent(t, endpoint, 1000)
	id := awaitAgents(t, client, 1)[0].ID
	for _, path := range []string{"", "/agents/" + id} {
		b.Open(t, client.Endpoint+path)
		awaitButtons(t, b, "suspend pause stop")
		assert.Empty(t, evaluate[string](t, b, tooWide), path)
		small := evaluate[[]string](t, b, `Array.from(document.querySelectorAll("button")).filter(e => e.offsetHeight < 32).map(e => e.value)`)
		assert.Empty(t, small, "a finger needs larger buttons")
		b.Screenshot(t, "agents-phone"+strings.ReplaceAll(path, "/", "-")[:min(len(path), 7)])
	}
	b.Open(t, client.Endpoint)
	awaitButtons(t, b, "suspend pause stop")
	awaitCurrent(t, b)
	b.Picture(t, "agents-phone")
	b.Leave(t, click("button", "suspend"))
	assert.Equal(t, "tracing is suspended", textOf(t, b, "#message"))
	assert.Empty(t, evaluate[string](t, b, tooWide))
	c.Stop(t)
	await(t, results)
}

// With many agents, a new one changes no other row.
func TestAPageOfManyAgentsKeepsItsRows(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	endpoint := testkit.Address(t)
	c, client := startControlled(t, "", controlledReceiver("lttng_jul", fmt.Sprintf("endpoint: %q, port_files: [], list_interval: 1h", endpoint)))
	playAgents(t, endpoint, 50, 2)
	awaitAgents(t, client, 50)
	b.Open(t, client.Endpoint)
	ids := evaluate[[]string](t, b, `Array.from(document.querySelectorAll("tbody tr[id]"), e => { e.old = true; return e.id })`)
	require.Len(t, ids, 50)
	playAgents(t, endpoint, 50, 2)
	awaitScript(t, b, "all agents are shown", `document.querySelectorAll("tbody tr[id]").length == 100`)
	kept := evaluate[[]string](t, b, `Array.from(document.querySelectorAll("tbody tr[id]")).filter(e => e.old).map(e => e.id)`)
	slices.Sort(ids)
	slices.Sort(kept)
	assert.Equal(t, ids, kept, "the elements of the rows stay")
	assert.True(t, evaluate[bool](t, b, `Array.from(document.querySelectorAll("tbody tr[id]")).every(e => e.querySelector("form").action.includes(e.id.replace("agent-", "")))`))
	c.Stop(t)
}
