// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontrolextension

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/agentcontrol/api"
)

const formType = "application/x-www-form-urlencoded"

// elements are all of a name in a page.
func elements(t *testing.T, page, name string) (found []*html.Node) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	require.NoError(t, err)
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && n.Data == name {
			found = append(found, n)
		}
	}
	return found
}

func attributeOf(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// submit sends a form as a browser does that shows the server's own page.
func (b *bed) submit(path string, form url.Values) (int, string) {
	b.t.Helper()
	r := b.request(http.MethodPost, path, formType, form.Encode())
	r.Header.Set("Origin", "http://"+r.Host)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Sec-Fetch-Mode", "navigate")
	response, body := b.do(r)
	return response.StatusCode, string(body)
}

func TestThePageListsAgentsWithButtons(t *testing.T) {
	b := newBed(t)
	assert.Contains(t, b.get("/"), "No agent is connected")
	f := newFake("one")
	b.extension.Register(f)
	page := b.get("/")
	for _, want := range []string{f.id, "shop", "127.0.0.1:1234", "42 java", "tracing"} {
		assert.Contains(t, page, want)
	}
	require.Len(t, elements(t, page, "form"), 1)
	form := elements(t, page, "form")[0]
	assert.Equal(t, "post", attributeOf(form, "method"))
	buttons := elements(t, page, "button")
	require.Len(t, buttons, 1, "one that needs no argument and stops nothing")
	assert.Equal(t, "suspend", attributeOf(buttons[0], "value"))
	status, body := b.submit("/"+attributeOf(form, "action"), url.Values{"command": {"suspend"}})
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, body, "Done: suspend")
	assert.Equal(t, "done", f.told()[0].Outcome())
	assert.Contains(t, b.get("/style.css"), "font")
	assert.Contains(t, page, "Stop tracing.", "it says what the command does")
	assert.Equal(t, "agents/"+f.id+"#command-enable", linkTo(t, page, "enable …"), "a command with an argument has a form elsewhere")
}

// linkTo is the address of the link with a text.
func linkTo(t *testing.T, page, text string) string {
	t.Helper()
	for _, a := range elements(t, page, "a") {
		if a.FirstChild != nil && a.FirstChild.Data == text {
			return attributeOf(a, "href")
		}
	}
	return ""
}

// values are the commands of a page's buttons.
func values(t *testing.T, page string) (all []string) {
	t.Helper()
	for _, button := range elements(t, page, "button") {
		all = append(all, attributeOf(button, "value"))
	}
	return all
}

func TestTheListHasOnlyButtonsThatFitTheAgentsState(t *testing.T) {
	b := newBed(t, disruptive)
	f := newFake("one")
	b.extension.Register(f)
	assert.Equal(t, []string{"suspend", "stop"}, values(t, b.get("/")))
	f.snapshot.Unfit = map[string]string{"suspend": "tracing is <suspended> already", "enable": "it has no loggers"}
	page := b.get("/")
	assert.Equal(t, []string{"stop"}, values(t, page))
	assert.Empty(t, linkTo(t, page, "enable …"))
	page = b.get("/agents/" + f.id)
	assert.Contains(t, page, "Not now: tracing is &lt;suspended&gt; already.")
	for _, button := range elements(t, page, "button") {
		_, isUnfit := f.snapshot.Unfit[attributeOf(button, "value")]
		assert.Equal(t, isUnfit, hasAttribute(button, "disabled"), attributeOf(button, "value"))
	}
	assert.Equal(t, f.snapshot.Unfit, b.list()[0].Unfit)
}

func hasAttribute(n *html.Node, name string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
}

// A command that stops the program looks different, and needs a second click.
func TestCommandsThatStopAProgramAreMarked(t *testing.T) {
	b := newBed(t, disruptive)
	f := newFake("one")
	b.extension.Register(f)
	for _, page := range []string{b.get("/"), b.get("/agents/" + f.id)} {
		assert.Contains(t, page, "This can stop or pause the program.")
		for _, button := range elements(t, page, "button") {
			stops := attributeOf(button, "value") == "stop"
			assert.Equal(t, stops, attributeOf(button, "class") == "stops", attributeOf(button, "value"))
			assert.Equal(t, stops, strings.Contains(attributeOf(button, "data-confirm"), "Stop the program."), attributeOf(button, "value"))
		}
	}
}

func TestAnUnchangedPageIsAnsweredWithoutContent(t *testing.T) {
	b := newBed(t)
	f := newFake("one")
	b.extension.Register(f)
	for _, path := range []string{"/", "/agents/" + f.id} {
		first, body := b.do(b.request(http.MethodGet, path, "", ""))
		tag := first.Header.Get("ETag")
		require.NotEmpty(t, tag, path)
		assert.NotEmpty(t, body)
		r := b.request(http.MethodGet, path, "", "")
		r.Header.Set("If-None-Match", tag)
		again, body := b.do(r)
		assert.Equal(t, http.StatusNotModified, again.StatusCode, path)
		assert.Empty(t, body)
		f.snapshot.State = "suspended"
		r = b.request(http.MethodGet, path, "", "")
		r.Header.Set("If-None-Match", tag)
		changed, _ := b.do(r)
		assert.Equal(t, http.StatusOK, changed.StatusCode, path)
		f.snapshot.State = "tracing"
	}
}

// The page of an agent that sends heartbeats stays as it is.
func TestTheTimeOfAnAgentsLatestMessageIsRounded(t *testing.T) {
	at := time.Date(2026, 1, 2, 13, 4, 5, 0, time.Local)
	assert.Equal(t, "–", shownSeen(nil, at))
	for after, want := range map[time.Duration]string{
		0: "now", -time.Second: "now", 14 * time.Second: "now", 15 * time.Second: "13:04:05", 11 * time.Hour: "13:04:05",
		13 * time.Hour: at.Format("2006-01-02 15:04:05 MST"),
	} {
		assert.Equal(t, want, shownSeen(&at, at.Add(after)), after)
	}
}

// Pages that are kept current read the collector's own metrics only every few seconds.
func TestManyPagesReadTheCollectorsMetricsOnce(t *testing.T) {
	b := newBed(t)
	var reads atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { reads.Add(1) }))
	t.Cleanup(server.Close)
	b.configure(server.Listener.Addr().String())
	for range 20 {
		b.get("/")
	}
	assert.EqualValues(t, 1, reads.Load())
	b.extension.read.until = time.Now()
	b.get("/")
	assert.EqualValues(t, 2, reads.Load())
}

func TestThePageOfAnAgentHasAFormForEachCommand(t *testing.T) {
	b := newBed(t)
	f := newFake("one")
	b.extension.Register(f)
	page := b.get("/agents/" + f.id)
	assert.Len(t, elements(t, page, "form"), 3)
	assert.Contains(t, page, "if it is above &lt;8&gt;: allow_disruptive is not set.")
	for _, button := range elements(t, page, "button") {
		assert.Equal(t, attributeOf(button, "value") == "stop", hasAttribute(button, "disabled"), attributeOf(button, "value"))
	}
	status, body := b.submit("/agents/"+f.id+"/commands", url.Values{
		"command": {"enable"}, "argument.logger": {"com.example"}, "argument.level": {""}, "argument.limit": {"3"},
	})
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, body, "enable limit=3 logger=com.example")
	status, body = b.submit("/agents/"+f.id+"/commands", url.Values{"command": {"stop"}})
	assert.Equal(t, http.StatusForbidden, status)
	assert.Contains(t, body, "allow_disruptive")
	status, body = b.submit("/agents/0123/commands", url.Values{"command": {"suspend"}})
	assert.Equal(t, http.StatusNotFound, status)
	assert.Contains(t, body, "no agent has the ID")
}

func TestNamesAreEscaped(t *testing.T) {
	const evil = `<script>alert(1)</script>"'><img src=x onerror=alert(1)>`
	b := newBed(t, disruptive)
	f := newFake("one")
	f.snapshot.Service, f.snapshot.Address, f.snapshot.State, f.snapshot.Receiver = evil, evil, evil, evil
	f.snapshot.Process.Name = evil
	f.snapshot.Counters = []agentcontrol.Counter{{Name: evil, Value: -1}}
	f.do = func(context.Context, agentcontrol.Order) (agentcontrol.Answer, error) {
		return agentcontrol.Answer{Message: evil, Details: []agentcontrol.Detail{{Name: evil, Value: evil}}, Items: []string{evil}}, nil
	}
	b.extension.Register(f)
	_, done := b.submit("/agents/"+f.id+"/commands", url.Values{"command": {"suspend"}})
	_, wrong := b.submit("/agents/"+f.id+"/commands", url.Values{"command": {evil}})
	for _, page := range []string{b.get("/"), b.get("/agents/" + f.id), done, wrong} {
		assert.Contains(t, page, "alert(1)", "the text is shown")
		for _, name := range []string{"img", "iframe", "object"} {
			assert.Empty(t, elements(t, page, name), page)
		}
		for _, script := range elements(t, page, "script") {
			assert.Nil(t, script.FirstChild, page)
		}
	}
	assert.Equal(t, evil, b.list()[0].Service, "JSON has the exact name")
}

// Reloading an answer must not send the command again.
func TestTheAnswerToAFormHasAnAddressOfItsOwn(t *testing.T) {
	b := newBed(t)
	b.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	f := newFake("one")
	b.extension.Register(f)
	send := func(command string) string {
		r := b.request(http.MethodPost, "/agents/"+f.id+"/commands", formType, url.Values{"command": {command}}.Encode())
		response, _ := b.do(r)
		require.Equal(t, http.StatusSeeOther, response.StatusCode)
		to, err := r.URL.Parse(response.Header.Get("Location"))
		require.NoError(t, err)
		return to.Path
	}
	look := func(path string) (int, string) {
		response, body := b.do(b.request(http.MethodGet, path, "", ""))
		return response.StatusCode, string(body)
	}
	first := send("suspend")
	for range 2 {
		status, body := look(first)
		assert.Equal(t, http.StatusOK, status)
		assert.Contains(t, body, "Done: suspend")
		assert.Contains(t, body, `href="../../agents/`+f.id)
	}
	status, body := look(send("stop"))
	assert.Equal(t, http.StatusForbidden, status)
	assert.Contains(t, body, "allow_disruptive")
	assert.Len(t, f.told(), 2)
	for range maxKept - 1 {
		send("suspend")
	}
	status, body = look(first)
	assert.Equal(t, http.StatusNotFound, status)
	assert.Contains(t, body, "no longer kept")
	f.do = func(context.Context, agentcontrol.Order) (agentcontrol.Answer, error) {
		return agentcontrol.Answer{Items: slices.Repeat([]string{strings.Repeat("x", maxText)}, 300)}, nil
	}
	response, large := b.do(b.request(http.MethodPost, "/agents/"+f.id+"/commands", formType, "command=suspend"))
	assert.Equal(t, http.StatusOK, response.StatusCode, "it is too large to be kept")
	assert.Contains(t, string(large), "xxx")
}

func TestThereAreAsManyPagesAsAgentsNeed(t *testing.T) {
	b := newBed(t)
	status := func(page string) int {
		response, _ := b.do(b.request(http.MethodGet, "/?page="+page, "", ""))
		return response.StatusCode
	}
	assert.Equal(t, http.StatusOK, status("1"), "though no agent is there")
	for n, pages := range map[int]int{agentsOnPage: 1, agentsOnPage + 1: 2} {
		for i := range n {
			b.extension.Register(newFake(fmt.Sprint(i)))
		}
		assert.Equal(t, http.StatusOK, status(fmt.Sprint(pages)))
		for _, none := range []string{fmt.Sprint(pages + 1), "0", "-1", "99999999999999999999", "x"} {
			assert.Equal(t, http.StatusNotFound, status(none), "page %s of %d agents", none, n)
		}
		b = newBed(t)
	}
}

func TestPagesHaveNoForeignLinksAndOnlyTheServersScript(t *testing.T) {
	b := newBed(t)
	f := newFake("one")
	b.extension.Register(f)
	for _, path := range []string{"/", "/agents/" + f.id} {
		page := b.get(path)
		for _, script := range elements(t, page, "script") {
			assert.Equal(t, "live.js", strings.TrimPrefix(attributeOf(script, "src"), "../"))
			assert.Nil(t, script.FirstChild)
		}
		for _, name := range []string{"a", "link", "form", "img"} {
			for _, n := range elements(t, page, name) {
				to := attributeOf(n, "href") + attributeOf(n, "src") + attributeOf(n, "action")
				assert.False(t, strings.Contains(to, "//"), to)
			}
		}
	}
}

func TestRequestsOfOtherSitesDoNothing(t *testing.T) {
	b := newBed(t)
	f := newFake("one")
	b.extension.Register(f)
	f.do = func(context.Context, agentcontrol.Order) (agentcontrol.Answer, error) {
		assert.Fail(t, "the agent received a command")
		return agentcontrol.Answer{}, nil
	}
	form := url.Values{"command": {"suspend"}}.Encode()
	const order = `{"command":"suspend"}`
	for _, c := range []struct {
		name, method, path, contentType, body string
		headers                               map[string]string
		host                                  string
		status                                int
	}{
		{name: "a form of another site", method: "POST", path: "/agents/", contentType: formType, body: form,
			headers: map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Origin": "https://evil.example"}, status: 403},
		{name: "a form of another port", method: "POST", path: "/agents/", contentType: formType, body: form,
			headers: map[string]string{"Sec-Fetch-Site": "same-site", "Origin": "http://127.0.0.1:1"}, status: 403},
		{name: "a form of an old browser", method: "POST", path: "/agents/", contentType: formType, body: form,
			headers: map[string]string{"Origin": "https://evil.example"}, status: 403},
		{name: "a form of nowhere", method: "POST", path: "/agents/", contentType: formType, body: form,
			headers: map[string]string{"Origin": "null"}, status: 403},
		{name: "JSON of another site", method: "POST", path: "/v1/agents/", contentType: api.TypeJSON, body: order,
			headers: map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}, status: 403},
		{name: "JSON with the type of text", method: "POST", path: "/v1/agents/", contentType: "text/plain", body: order, status: 415},
		{name: "a form to the API", method: "POST", path: "/v1/agents/", contentType: formType, body: form, status: 415},
		{name: "JSON to the page", method: "POST", path: "/agents/", contentType: api.TypeJSON, body: order, status: 415},
		{name: "a name that leads here", method: "POST", path: "/v1/agents/", contentType: api.TypeJSON, body: order, host: "evil.example", status: 403},
		{name: "a link", method: "GET", path: "/v1/agents/", status: 405},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := b.request(c.method, c.path+f.id+"/commands", c.contentType, c.body)
			for name, value := range c.headers {
				r.Header.Set(name, value)
			}
			r.Host = c.host
			response, body := b.do(r)
			assert.Equal(t, c.status, response.StatusCode, "%s", body)
		})
	}
	assert.Empty(t, f.told())
}

// A server on all addresses also has those that only this machine reaches. The owner of a name can
// let it lead to such an address, and then a page of the owner has the same origin as ours. Without
// TLS, browsers send no information about the site to an address other than this machine's.
func TestAForeignNameOfThisServerSendsNoCommands(t *testing.T) {
	b := newBed(t, func(c *Config) { c.NetAddr.Endpoint = "0.0.0.0:0" })
	f := newFake("one")
	b.extension.Register(f)
	_, port, err := net.SplitHostPort(b.extension.address.String())
	require.NoError(t, err)
	own, err := os.Hostname()
	require.NoError(t, err)
	order := func(host, path, contentType, body string) (int, string) {
		r, err := http.NewRequest(http.MethodPost, "http://127.0.0.1:"+port+path+f.id+"/commands", strings.NewReader(body))
		require.NoError(t, err)
		r.Host = host + ":" + port
		r.Header.Set("Content-Type", contentType)
		r.Header.Set("Origin", "http://"+r.Host)
		response, said := b.do(r)
		return response.StatusCode, string(said)
	}
	const command = `{"command":"suspend"}`
	for _, host := range []string{"evil.example", "localhost.evil.example", own + ".evil.example"} {
		for _, what := range [][]string{{"/v1/agents/", api.TypeJSON, command}, {"/agents/", formType, "command=suspend"}} {
			status, said := order(host, what[0], what[1], what[2])
			assert.Equal(t, http.StatusForbidden, status, host)
			assert.Contains(t, said, "allowed_hosts")
		}
	}
	assert.Empty(t, f.told())
	for _, host := range []string{"localhost", "127.0.0.1", "10.1.2.3", own} {
		status, said := order(host, "/v1/agents/", api.TypeJSON, command)
		assert.Equal(t, http.StatusOK, status, said)
	}
}

func TestPagesOfOtherSitesCannotReadAgents(t *testing.T) {
	b := newBed(t)
	for path, status := range map[string]int{"/v1/agents": 403, "/": 403} {
		r := b.request(http.MethodGet, path, "", "")
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		r.Header.Set("Sec-Fetch-Mode", "no-cors")
		response, _ := b.do(r)
		assert.Equal(t, status, response.StatusCode)
		r = b.request(http.MethodGet, path, "", "")
		r.Host = "evil.example"
		response, _ = b.do(r)
		assert.Equal(t, status, response.StatusCode)
	}
	r := b.request(http.MethodGet, "/", "", "")
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	r.Header.Set("Sec-Fetch-Mode", "navigate")
	r.Header.Set("Sec-Fetch-Dest", "document")
	response, _ := b.do(r)
	assert.Equal(t, http.StatusForbidden, response.StatusCode, "a page opened it")
	r.Header.Set("Sec-Fetch-User", "?1")
	response, _ = b.do(r)
	assert.Equal(t, http.StatusOK, response.StatusCode, "a followed link shows the page")
	for name, value := range map[string]string{
		"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin", "Cache-Control": "no-store",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
	} {
		assert.Equal(t, value, response.Header.Get(name), name)
	}
	policy := response.Header.Get("Content-Security-Policy")
	assert.Contains(t, policy, "default-src 'none'")
	assert.Contains(t, policy, "script-src 'self'")
	assert.NotContains(t, policy, "unsafe")
}
