// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthas

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// Settings of a [Client]. A field that is 0 has its default.
type Settings struct {
	// MaxAnswer is the maximum length of an answer in bytes. A page with a longer one is lost; default 16 MiB.
	MaxAnswer int64
	// Timeout limits the time of a request, beyond the time that the server waits by itself. A server whose event loops
	// are blocked takes several seconds; default 15 s.
	Timeout time.Duration
	// Pulls is the maximum number of open pulls. Each blocks an event loop of the server, which has two for each
	// processor; default 1.
	Pulls int
	// Doubt is how long the server may be silent about the first request before the client looks whether it is another
	// server; default 2 s.
	Doubt time.Duration
	// Reserve counts more bytes of memory for answers and their results, or fewer. An error ends the request. Nil counts
	// nothing. Results of a page count until the next pull, and those of [Client.Exec] until it returns.
	Reserve func(more int) error
	// UserID is a name for the client, which the server shows in its log since 4.2.
	UserID string
}

// The defaults of [Settings].
const (
	DefaultMaxAnswer = 16 << 20
	DefaultTimeout   = 15 * time.Second
	DefaultPulls     = 1
	DefaultDoubt     = 2 * time.Second
)

// Client sends requests to one server. Several goroutines may use it at the same time.
type Client struct {
	settings Settings
	http     http.Client
	url      string
	peer     string
	// pulls has one element for each open pull.
	pulls chan struct{}

	mu sync.Mutex
	// cookie is the server's cookie. With it, the server keeps one session of its own for the client, and asks for no
	// password again.
	cookie *http.Cookie
	stats  Stats
}

// Stats counts what the client ignored, over all answers.
type Stats struct {
	// Ignored counts fields and results of names that the client does not know. Newer versions have more.
	Ignored int64
	// Cut counts texts that were longer than the limit, and are cut.
	Cut int64
	// Malformed counts results that became a [Malformed].
	Malformed int64
}

// apiPath is the path of the API. With a slash at its end the server does not know it.
const apiPath = "/api"

// NewClient returns a client for the server at an address, such as http://127.0.0.1:8563. The HTTP client has the
// transport, with authentication and TLS. It follows no redirection.
func NewClient(client *http.Client, address string, settings Settings) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("address of Arthas: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("address of Arthas is %q: expected such as http://127.0.0.1:8563", u.Redacted())
	}
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), apiPath) + apiPath
	if settings.MaxAnswer <= 0 {
		settings.MaxAnswer = DefaultMaxAnswer
	}
	if settings.Timeout <= 0 {
		settings.Timeout = DefaultTimeout
	}
	if settings.Pulls <= 0 {
		settings.Pulls = DefaultPulls
	}
	if settings.Doubt <= 0 {
		settings.Doubt = DefaultDoubt
	}
	c := &Client{settings: settings, http: *client, url: u.String(), peer: u.Host, pulls: make(chan struct{}, settings.Pulls)}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, nil
}

// Stats returns the counts so far.
func (c *Client) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// Execution is the result of a command that [Client.Exec] carried out.
type Execution struct {
	Results []Result
	// TimedOut means that the server interrupted the command at its time limit.
	TimedOut bool
	// Incomplete means that the server dropped results: it has room for 500, and drops the newest.
	Incomplete bool
	// Sent is the time when the command was sent, and Elapsed the time until its answer arrived.
	Sent    time.Time
	Elapsed time.Duration
}

// Exec carries out a command and waits for its end, at least 0.1 s. It is for commands that end by themselves. The
// server interrupts the command after a time of at least 1 ms. If the command fails, the error is a [CommandError], and
// the results before it are valid. The command goes on until its end if the context ends.
func (c *Client) Exec(ctx context.Context, command Command, limit time.Duration) (Execution, error) {
	text, err := CommandLine(command)
	if err != nil {
		return Execution{}, err
	}
	e := Execution{Sent: time.Now()}
	req := request{Action: "exec", Command: text, ExecTimeout: max(1, limit.Milliseconds())}
	stop, isStop := command.(StopProfilerCommand)
	if isStop {
		req.maxText = stop.MaxText
	}
	answer, err := c.call(ctx, req, limit, &javamethods.Names{})
	if err != nil {
		return Execution{}, err
	}
	defer answer.held.release()
	e.Elapsed = time.Since(e.Sent)
	e.TimedOut, e.Incomplete = answer.timeExpired, !answer.timeExpired
	for _, it := range answer.items {
		switch result := it.result.(type) {
		case *status:
			e.Incomplete = false
			if result.code != 0 {
				err = &RequestError{Peer: c.peer, Action: "exec", Err: &CommandError{Code: result.code, Message: result.message}}
			}
		case nil, *commandEcho, *inputStatus, *welcome, *shutdown:
		case *Profiler:
			if isStop {
				result.dropBroken(answer.cut)
			}
			e.Results = append(e.Results, result)
		default:
			e.Results = append(e.Results, result)
		}
	}
	return e, err
}

// Identify returns the version of the server, if this package can work with it. Otherwise the error names what answers.
// It is the first request to a server: a telnet port reads the lines of a request as commands, and knows none of them.
// It may be silent about them, so a silent server is looked at during the request.
func (c *Client) Identify(ctx context.Context) (string, error) {
	const limit = time.Second
	asking, end := context.WithCancel(ctx)
	defer end()
	var looking sync.WaitGroup
	var other error
	looking.Go(func() {
		if !silent(asking, c.settings.Doubt) {
			return
		}
		if other = recognize(asking, c.url); other != nil {
			end()
		}
	})
	e, err := c.Exec(asking, VersionCommand{}, limit)
	end()
	looking.Wait()
	if other == nil && (errors.Is(err, ErrNotHTTP) || errors.Is(err, context.DeadlineExceeded)) && ctx.Err() == nil {
		other = recognize(ctx, c.url)
	}
	switch {
	case err != nil && other != nil: // err is another one each time
		return "", c.failed("exec", other)
	case err != nil:
		return "", err
	}
	for _, result := range e.Results {
		if version, is := result.(*Version); is {
			if !supported(version.Text) {
				return version.Text, c.failed("exec", fmt.Errorf("%w, received %q", ErrVersion, version.Text))
			}
			return version.Text, nil
		}
	}
	return "", c.failed("exec", fmt.Errorf("%w: it has no version", ErrNotArthas))
}

// silent waits for a time, and reports whether ctx has not ended meanwhile.
func silent(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// supported reports whether a version is at least 3.4, or no version number: an own build calls itself "unknown".
func supported(version string) bool {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	x, errX := strconv.Atoi(major)
	y, errY := strconv.Atoi(minor)
	return errX != nil || errY != nil || x > 3 || x == 3 && y >= 4
}

// request is the body of a request.
type request struct {
	Action      string `json:"action"`
	SessionID   string `json:"sessionId,omitempty"`
	ConsumerID  string `json:"consumerId,omitempty"`
	Command     string `json:"command,omitempty"`
	ExecTimeout int64  `json:"execTimeout,omitempty"`
	UserID      string `json:"userId,omitempty"`
	// maxText is the maximum length of a text of the answer, and 0 if only the length of the answer is limited.
	maxText int64
}

// answer is the body of an answer.
type answer struct {
	state, message        string
	sessionID, consumerID string
	job                   int64
	timeExpired           bool
	created               time.Time
	items                 []item
	// held is the memory of the answer.
	held held
	// cut is the number of bytes beyond the maximum length of a text.
	cut int64
}

// held is memory that is counted.
type held struct {
	// reserve is nil if nothing is counted.
	reserve func(more int) error
	bytes   int
}

// more counts more bytes, also if there is no room for them.
func (h *held) more(bytes int) error {
	if h.reserve == nil {
		return nil
	}
	h.bytes += bytes
	return h.reserve(bytes)
}

func (h *held) release() {
	if h.bytes > 0 {
		_ = h.reserve(-h.bytes)
		h.bytes = 0
	}
}

// call sends a request, and returns the answer if the server carried out the request. The server may wait for a time.
func (c *Client) call(ctx context.Context, req request, wait time.Duration, names *javamethods.Names) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, wait+c.settings.Timeout)
	defer cancel()
	a, err := c.exchange(ctx, req, names)
	if err != nil {
		a.held.release()
		return answer{}, c.failed(req.Action, err)
	}
	switch a.state {
	case "SUCCEEDED", "SCHEDULED":
		return a, nil
	case "INTERRUPTED":
		if a.timeExpired {
			return a, nil
		}
	case "":
		a.held.release()
		return answer{}, c.failed(req.Action, fmt.Errorf("%w: it has no state", ErrNotArthas))
	}
	a.held.release()
	return answer{}, c.failed(req.Action, &RefusedError{State: a.state, Message: a.message})
}

func (c *Client) failed(action string, err error) error {
	return &RequestError{Peer: c.peer, Action: action, Err: err}
}

// exchange sends a request and returns its answer. The memory of the answer counts also after an error.
func (c *Client) exchange(ctx context.Context, req request, names *javamethods.Names) (a answer, err error) {
	a.held.reserve = c.settings.Reserve
	body, err := json.Marshal(req)
	if err != nil {
		return a, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	r.Header.Set("Content-Type", "application/json")
	c.addCookie(r)
	response, err := c.http.Do(r)
	if err != nil {
		return a, explain(err)
	}
	defer response.Body.Close()
	c.storeCookie(response)
	if err := checkStatus(response); err != nil {
		return a, err
	}
	received, cut, err := c.read(response.Body, req.maxText, &a.held)
	if err != nil {
		return a, err
	}
	a, err = c.decode(received, a.held, names)
	a.cut = cut
	return a, err
}

// memoryOfByte is the memory of a byte of an answer, with that of the copies while the answer grows, and of its texts.
const memoryOfByte = 4

// countedReader counts the memory of the bytes that it reads.
type countedReader struct {
	io.Reader
	held *held
}

func (r countedReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if full := r.held.more(n * memoryOfByte); full != nil {
		return n, full
	}
	return n, err
}

// read reads the body of an answer, and returns the number of bytes that it has cut from texts longer than maxText. 0 cuts
// none.
func (c *Client) read(from io.Reader, maxText int64, counted *held) (body []byte, cut int64, err error) {
	// The rest of an answer with a long text is short.
	limit := c.settings.MaxAnswer + maxText
	all := &io.LimitedReader{R: from, N: limit + cutFactor*maxText + 1}
	texts, short := &shortTexts{from: all, longest: maxText}, io.Reader(all)
	if maxText > 0 {
		short = texts
	}
	received, err := io.ReadAll(io.LimitReader(countedReader{short, counted}, limit+1))
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, 0, fmt.Errorf("%w after %d bytes", ErrCut, len(received))
	case err != nil:
		return nil, 0, fmt.Errorf("after %d bytes of the answer: %w", len(received), withoutPort(err))
	case int64(len(received)) > limit || all.N == 0:
		return nil, 0, fmt.Errorf("%w of %d bytes", ErrTooLarge, limit)
	}
	return received, texts.cut, nil
}

// sessionCookie is the name of the server's cookie.
const sessionCookie = "asession"

func (c *Client) addCookie(r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cookie != nil && c.http.Jar == nil {
		r.AddCookie(c.cookie)
	}
}

func (c *Client) storeCookie(response *http.Response) {
	const maxCookie = 256
	for _, cookie := range response.Cookies() {
		if cookie.Name == sessionCookie && len(cookie.Value) <= maxCookie {
			c.mu.Lock()
			c.cookie = &http.Cookie{Name: cookie.Name, Value: cookie.Value}
			c.mu.Unlock()
		}
	}
}

// checkStatus returns why an answer is not of the API. Arthas answers 200 also if it refuses a request.
func checkStatus(response *http.Response) error {
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized:
		return ErrUnauthorized
	default:
		return fmt.Errorf("%w: expected status 200, received %d", ErrNotArthas, response.StatusCode)
	}
	if kind := response.Header.Get("Content-Type"); !strings.HasPrefix(kind, "application/json") {
		return fmt.Errorf("%w: expected JSON, received content type %q", ErrNotArthas, kind)
	}
	return nil
}

// explain adds the meaning to an error of the HTTP client. It leaves out the URL, which may have a password.
func explain(err error) error {
	var ofURL *url.Error
	if errors.As(err, &ofURL) {
		err = ofURL.Err
	}
	err = withoutPort(err)
	switch {
	case errors.Is(err, net.ErrClosed):
		return fmt.Errorf("%w: it came before the end of the request", ErrNotHTTP)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w: %w", ErrNotListening, err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return fmt.Errorf("%w: %w", ErrClosed, err)
	}
	if strings.Contains(err.Error(), "malformed HTTP ") {
		return fmt.Errorf("%w: %w", ErrNotHTTP, err)
	}
	return err
}

// withoutPort removes the client's port from an error: it is another one each time, and so would be the text.
func withoutPort(err error) error {
	for {
		op, is := err.(*net.OpError)
		if !is || op.Op == "dial" {
			return err
		}
		err = op.Err
	}
}

// decode decodes an answer. counted is the memory that counts for it so far.
func (c *Client) decode(body []byte, counted held, names *javamethods.Names) (answer, error) {
	r := &reader{data: body, names: names, held: &counted}
	a := r.answer()
	r.reserve()
	a.held = counted
	if r.err == nil && r.next() != 0 {
		r.unexpected("the end of the answer")
	}
	bad := int64(0)
	for _, it := range a.items {
		if _, is := it.result.(*Malformed); is {
			bad++
		}
	}
	c.mu.Lock()
	c.stats.Ignored += r.ignored
	c.stats.Cut += r.cut
	c.stats.Malformed += bad
	c.mu.Unlock()
	return a, r.err
}

func (r *reader) answer() (a answer) {
	for key := range r.object("an answer of Arthas") {
		switch string(key) {
		case "state":
			a.state = r.name("a state")
		case "message":
			a.message = r.text("a message")
		case "sessionId":
			a.sessionID = r.text("the ID of a session")
		case "consumerId":
			a.consumerID = r.text("the ID of a consumer")
		case "body":
			r.body(&a)
		case "requestId":
			r.skip()
		default:
			r.ignore()
		}
	}
	return a
}

func (r *reader) body(a *answer) {
	for key := range r.object("a body") {
		switch string(key) {
		case "jobId":
			a.job = r.integer("the number of a job")
		case "results":
			a.items = r.items()
		case "timeExpired":
			a.timeExpired = r.boolean("true or false")
		case "createTime":
			a.created = r.milliseconds("an instant in milliseconds")
		case "command", "jobStatus", "timeout", "pid", "lastAccessTime":
			r.skip()
		default:
			r.ignore()
		}
	}
}
