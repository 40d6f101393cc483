// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthas

import (
	"context"
	"errors"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// The server's limits.
const (
	// pullWait is the time that the server waits for the first result of a page.
	pullWait = 2 * time.Second
	// pageResults is the maximum number of results of a page. pageItems is the number of items that end a page too: a
	// result counts for as many items as its lists and maps have elements, and for at least one.
	pageResults = 20
	pageItems   = 100
	// queueResults is the length of the queue of a session. The server drops the oldest result of a full queue.
	queueResults = 50
)

// Session is a session with a server. It has at most one job, and its results stay in a queue of the server. A server
// needs a thread for each session, in the traced program.
//
// One goroutine at a time may pull. Others may interrupt or close meanwhile.
type Session struct {
	client *Client
	id     string
	server Server
	// names are of the goroutine that pulls, and so is page, the memory of the last page with that of the names.
	names javamethods.Names
	page  held
	// hash is the seed of recent.
	hash maphash.Seed

	mu       sync.Mutex
	consumer string
	state    sessionState
	// gone is why no command can start any more.
	gone    error
	job     *Job
	pulling bool
	// recent has the hashes of the last results, in the order of the queue.
	recent []uint64
	// replay collects the results that the server repeats after a rejoin, until it has repeated all.
	replay   []item
	replayed bool
	// closing means that the client has asked the server to close the session.
	closing bool
	loss    Loss
	// inFullPages counts the results since the last page that was not full.
	inFullPages int
}

// sessionState is what a session can do next.
type sessionState uint8

const (
	// sessionReady means that a command can start.
	sessionReady sessionState = iota
	// sessionRunning means that a job runs, or that its results are not pulled yet.
	sessionRunning
	// sessionEvicted means that the server has no queue for the client. A job may run.
	sessionEvicted
	// sessionGone means that the server does not have the session, or that it is in doubt whether a job runs.
	sessionGone
	// sessionClosed means that the client closed the session.
	sessionClosed
)

// Server is what a server says about itself when a session opens.
type Server struct {
	// ProcessID is the id of the Java process.
	ProcessID          int64
	Version, MainClass string
	// Offset is the difference between the server's local time and UTC, if HasOffset.
	Offset    time.Duration
	HasOffset bool
}

// Loss counts what got lost in a session. The server drops results without a word, and numbers none of them, so most
// losses have no exact number.
type Loss struct {
	// Results counts results that got lost: a job ended by its limit, and fewer arrived. It includes those of broken pages.
	// A job looks the same if another client of the session interrupted it. Then the number is too high.
	Results int64
	// Overflows counts jobs whose first results certainly got lost: the queue was full.
	Overflows int64
	// FullQueues counts the times that 50 results came in full pages. The queue may have been full then, and results may
	// be lost.
	FullQueues int64
	// BrokenPages counts answers to pulls that did not arrive. Each had at most 20 results.
	BrokenPages int64
	// Evictions counts removals of the queue. Gaps counts those with results lost: rejoining shows it.
	Evictions, Gaps int64
	// Stale counts results of an earlier job, that arrived after its end.
	Stale int64
}

// Open opens a session. It asks the server for its process and its clock.
func (c *Client) Open(ctx context.Context) (*Session, error) {
	sent := time.Now()
	a, err := c.call(ctx, request{Action: "init_session", UserID: c.settings.UserID}, 0, &javamethods.Names{})
	if err != nil {
		return nil, err
	}
	a.held.release()
	s := c.session(a.sessionID, a.consumerID)
	if err := s.greet(ctx, sent); err != nil {
		// The session has no job, and expires by itself.
		return nil, err
	}
	return s, nil
}

// Join returns a session that another client opened, such as a collector that was killed. A job may run in it: interrupt
// it before a command starts. Its results are dropped.
func (c *Client) Join(ctx context.Context, sessionID string) (*Session, error) {
	a, err := c.call(ctx, request{Action: "join_session", SessionID: sessionID}, 0, &javamethods.Names{})
	if err != nil {
		return nil, err
	}
	a.held.release()
	return c.session(sessionID, a.consumerID), nil
}

func (c *Client) session(id, consumer string) *Session {
	return &Session{client: c, id: id, consumer: consumer, hash: maphash.MakeSeed(), page: held{reserve: c.settings.Reserve}}
}

// greet pulls the first page, which has the server's local time, and asks for the instant of it.
func (s *Session) greet(ctx context.Context, sent time.Time) error {
	a, err := s.pull(ctx, s.consumer)
	if err != nil {
		return err
	}
	s.remember(a.items)
	info, err := s.client.call(ctx, request{Action: "session_info", SessionID: s.id}, 0, &javamethods.Names{})
	if err != nil {
		return err
	}
	info.held.release()
	for _, it := range a.items {
		if w, is := it.result.(*welcome); is {
			s.server = Server{ProcessID: w.processID, Version: w.version, MainClass: w.mainClass}
			if !w.time.IsZero() && !info.created.IsZero() {
				s.server.Offset, s.server.HasOffset = w.time.Offset(info.created), true
			}
		}
	}
	return nil
}

// ID returns the ID of the session. Another client can join or close the session with it.
func (s *Session) ID() string { return s.id }

// Server returns what the server said about itself. It is empty after [Client.Join].
func (s *Session) Server() Server { return s.server }

// Loss returns the counts of the session so far.
func (s *Session) Loss() Loss {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loss
}

// Start starts a command. If the server refuses it, the session can start another one. After another error it is in
// doubt whether the command runs: the session can only be closed.
func (s *Session) Start(ctx context.Context, command Command) (*Job, error) {
	text, err := CommandLine(command)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	err = s.cannotStart()
	if err == nil {
		s.state = sessionRunning
	}
	s.mu.Unlock()
	if err != nil {
		return nil, s.client.failed("async_exec", err)
	}
	j := &Job{session: s, sent: time.Now(), limit: -1}
	if l, is := command.(limited); is {
		j.limit = l.limit().results()
	}
	a, err := s.client.call(ctx, request{Action: "async_exec", SessionID: s.id, Command: text}, 0, &javamethods.Names{})
	a.held.release()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.state == sessionClosed:
		return nil, s.client.failed("async_exec", ErrClosedSession)
	case err == nil:
		j.number, s.job = a.job, j
		return j, nil
	case errors.Is(err, ErrSessionNotFound):
		s.state, s.gone = sessionGone, err
	case notCarriedOut(err):
		s.state = sessionReady
	default:
		s.state, s.gone = sessionGone, err
	}
	return nil, err
}

// cannotStart returns why no command can start, or nil.
func (s *Session) cannotStart() error {
	switch s.state {
	case sessionRunning:
		return ErrJobRunning
	case sessionEvicted:
		return ErrConsumerNotFound
	case sessionGone:
		return s.gone
	case sessionClosed:
		return ErrClosedSession
	default:
		return nil
	}
}

// notCarriedOut reports whether an error means that the server did not carry out the request.
func notCarriedOut(err error) bool {
	var refused *RefusedError
	return errors.As(err, &refused) || errors.Is(err, ErrNotListening) || errors.Is(err, ErrUnauthorized) || errors.Is(err, ErrNotArthas)
}

// Interrupt ends the job that runs in the session, also one that another client started. It is no error if none runs.
func (s *Session) Interrupt(ctx context.Context) error {
	a, err := s.client.call(ctx, request{Action: "interrupt_job", SessionID: s.id}, 0, &javamethods.Names{})
	a.held.release()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case errors.Is(err, ErrNoJob):
		return nil
	case errors.Is(err, ErrSessionNotFound):
		s.lost(err)
		return nil
	case err != nil:
		return err
	}
	if s.job != nil && s.job.number == a.job {
		s.job.asked = true
	}
	return nil
}

// lost notes that the server does not have the session.
func (s *Session) lost(err error) {
	if s.state == sessionClosed {
		return
	}
	s.state, s.gone = sessionGone, err
	switch {
	case s.job == nil:
	case s.closing:
		s.job.finish(End{Reason: EndInterrupted})
	default:
		s.job.finish(End{Reason: EndSessionLost, Message: err.Error()})
	}
}

// Forget stops counting the memory of the last page. No pull may follow.
func (s *Session) Forget() { s.page.release() }

// Close closes the session, and ends its job. It is no error if the server does not have it any more. The job leaves its
// classes instrumented.
func (s *Session) Close(ctx context.Context) error {
	s.mu.Lock()
	known := s.state != sessionClosed
	s.closing = true
	s.mu.Unlock()
	if !known {
		return nil
	}
	a, err := s.client.call(ctx, request{Action: "close_session", SessionID: s.id}, 0, &javamethods.Names{})
	a.held.release()
	if err != nil && !errors.Is(err, ErrSessionNotFound) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = sessionClosed
	if s.job != nil {
		s.job.finish(End{Reason: EndInterrupted})
	}
	return nil
}

// Rejoin gets a queue again after the server removed it. The server repeats the last 50 results. The session recognizes
// those that it has pulled before.
func (s *Session) Rejoin(ctx context.Context) error {
	a, err := s.client.call(ctx, request{Action: "join_session", SessionID: s.id}, 0, &javamethods.Names{})
	a.held.release()
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(err, ErrSessionNotFound) {
		s.lost(err)
	}
	if err != nil {
		return err
	}
	if s.state == sessionEvicted {
		s.state = sessionReady
		if s.job != nil {
			s.state = sessionRunning
		}
	}
	s.consumer, s.replayed, s.replay = a.consumerID, true, nil
	return nil
}

// pull asks for a page. At most the client's number of pulls are open.
func (s *Session) pull(ctx context.Context, consumer string) (answer, error) {
	select {
	case s.client.pulls <- struct{}{}:
	case <-ctx.Done():
		return answer{}, errNotSent
	}
	defer func() { <-s.client.pulls }()
	s.page.release()
	a, err := s.client.call(ctx, request{Action: "pull_results", SessionID: s.id, ConsumerID: consumer}, pullWait, &s.names)
	s.page.bytes = a.held.bytes
	_ = s.page.more(s.names.Bytes()) // the next answer has the error
	return a, err
}

// errNotSent means that the context ended before the request was sent.
var errNotSent = errors.New("the pull was not sent")

// remember notes the results of a page, to recognize them if the server repeats them.
func (s *Session) remember(items []item) {
	for _, it := range items {
		if _, is := it.result.(*inputStatus); !is {
			s.recent = append(s.recent, maphash.Bytes(s.hash, it.json))
		}
	}
	if drop := len(s.recent) - queueResults; drop > 0 {
		s.recent = slices.Delete(s.recent, 0, drop)
	}
}

// Job is a command that runs in a session.
type Job struct {
	session *Session
	number  int64
	sent    time.Time
	// limit is the number of results after which the job ends, or -1.
	limit int64
	// received counts the results that count for the limit.
	received int64
	// begun means that a result of the job arrived.
	begun bool
	// asked means that the server interrupted the job because the client asked for it.
	asked bool
	// unhealthy is the server's message if it interrupted the job because nothing pulled.
	unhealthy string
	// status is the status that ends the job. Results can follow it in the queue.
	status *status
	end    *End
}

// EndReason is why a job ended.
type EndReason uint8

const (
	// EndFinished means that the command is done, or reached its limit.
	EndFinished EndReason = iota + 1
	// EndInterrupted means that the client interrupted the job.
	EndInterrupted
	// EndFailed means that the command failed.
	EndFailed
	// EndUnhealthy means that the server interrupted the job, because the queue was full and nothing pulled for 1 s.
	EndUnhealthy
	// EndServerStopped means that the server stops.
	EndServerStopped
	// EndSessionLost means that the server does not have the session.
	EndSessionLost
)

// String returns the name of the reason.
func (e EndReason) String() string {
	names := [...]string{"unknown", "finished", "interrupted", "failed", "unhealthy", "server stopped", "session lost"}
	if int(e) >= len(names) {
		e = 0
	}
	return names[e]
}

// End is the end of a job.
type End struct {
	Reason EndReason
	// Code and Message are of the server. Code is 0 unless the command failed.
	Code    int32
	Message string
}

// Page is what a pull returns.
type Page struct {
	// Results are the job's results in the order of the server. Durations that are none are not known.
	Results []Result
	// Elapsed is the time since the command was sent.
	Elapsed time.Duration
	// Unbegun counts durations that are not known because the calls had no begin.
	Unbegun int64
	// End is the end of the job, or nil. No page follows it.
	End *End
}

// Pull waits up to 2 s for results, and returns a page of them. An error does not end the job: another pull can follow.
// After [ErrConsumerNotFound], [Session.Rejoin] is necessary first. If the context ends during a pull, its results may
// be lost, and are counted as a broken page.
func (j *Job) Pull(ctx context.Context) (Page, error) {
	s := j.session
	s.mu.Lock()
	consumer := s.consumer
	switch {
	case j.end != nil:
		end := *j.end
		s.mu.Unlock()
		return Page{Elapsed: time.Since(j.sent), End: &end}, nil
	case s.pulling:
		s.mu.Unlock()
		return Page{}, s.client.failed("pull_results", ErrPulling)
	case s.state == sessionEvicted:
		s.mu.Unlock()
		return Page{}, s.client.failed("pull_results", ErrConsumerNotFound)
	}
	s.pulling = true
	s.mu.Unlock()
	a, err := s.pull(ctx, consumer)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pulling = false
	if err == nil {
		return j.accept(a.items), nil
	}
	return j.pullFailed(ctx, err)
}

// Rest returns the new ones of the results that the server has repeated so far after [Session.Rejoin]. It is for a job
// that is not pulled any more although it has not ended.
func (j *Job) Rest() Page {
	s := j.session
	s.mu.Lock()
	defer s.mu.Unlock()
	return j.rest()
}

// rest is Rest for a caller that holds the lock.
func (j *Job) rest() Page {
	page := Page{Elapsed: time.Since(j.sent)}
	for _, it := range j.session.cutReplay() {
		j.acceptItem(&page, it)
	}
	return page
}

// pullFailed notes what an error of a pull means for the job.
func (j *Job) pullFailed(ctx context.Context, err error) (Page, error) {
	s := j.session
	switch {
	case errors.Is(err, errNotSent):
		err = s.client.failed("pull_results", ctx.Err())
	case errors.Is(err, ErrSessionNotFound):
		page := j.rest()
		s.lost(err)
		page.End = j.end
		return page, nil
	case errors.Is(err, ErrConsumerNotFound):
		if s.state == sessionRunning {
			s.state = sessionEvicted
		}
		s.loss.Evictions++
	case !notCarriedOut(err):
		s.loss.BrokenPages++
	}
	return Page{Elapsed: time.Since(j.sent)}, err
}

// accept takes the results of a page.
func (j *Job) accept(items []item) Page {
	s := j.session
	full := isFull(items)
	if s.replayed {
		items = s.withoutReplayed(items)
	} else {
		s.remember(items)
		s.countFull(full, len(items))
	}
	page := Page{Elapsed: time.Since(j.sent)}
	for _, it := range items {
		j.acceptItem(&page, it)
	}
	// The queue was empty if the page is not full. Then no message follows that gives the reason of the end.
	if j.status != nil && !full && !s.replayed {
		j.finish(j.reason())
	}
	page.End = j.end
	return page
}

// isFull reports whether the server may have more results than a page has.
func isFull(items []item) bool {
	n := 0
	for _, it := range items {
		n += itemsOf(it.result)
	}
	return len(items) >= pageResults || n >= pageItems
}

// itemsOf returns the number of items that a result counts for, or more.
func itemsOf(result Result) int {
	n := 0
	switch r := result.(type) {
	case nil, *Malformed:
		return pageItems
	case *Monitor:
		n = len(r.Methods)
	case *CallStack:
		n = len(r.Frames)
	case *Records:
		n = len(r.Calls)
	case *Classes:
		n = len(r.Names)
	case *Memory:
		n = len(r.Pools)
	case *Threads:
		n = len(r.Threads) + len(r.States)
	case *Dashboard:
		n = len(r.Threads) + len(r.Pools) + len(r.Collectors)
	case *JVM:
		n = len(r.Properties)
	}
	return max(1, n)
}

// countFull counts the times that the queue may have been full.
func (s *Session) countFull(full bool, results int) {
	if !full {
		s.inFullPages = 0
		return
	}
	if s.inFullPages += results; s.inFullPages >= queueResults {
		s.inFullPages -= queueResults
		s.loss.FullQueues++
	}
}

// withoutReplayed returns the results that follow those that were pulled before. The server repeats its last results
// between two states of input. So the session collects them until the second one, which may be in a later page. The
// place where the longest end of the known results stands in the repeated ones shows which are new. If there is none,
// results are lost.
func (s *Session) withoutReplayed(items []item) []item {
	for i, it := range items {
		state, is := it.result.(*inputStatus)
		if is && state.value == "DISABLED" {
			continue
		}
		if !is {
			// The hash of a result is taken now, because its JSON is not valid after the page.
			it.json, it.repeat = nil, maphash.Bytes(s.hash, it.json)
			s.replay = append(s.replay, it)
			continue
		}
		known := s.knownReplay()
		if known == 0 && len(s.recent) > 0 {
			s.loss.Gaps++
		}
		fresh := s.replay[known:]
		for _, it := range fresh {
			s.recent = append(s.recent, it.repeat)
		}
		s.replay, s.replayed = nil, false
		s.remember(items[i+1:])
		return append(fresh, items[i+1:]...)
	}
	return nil
}

// cutReplay returns the new ones of the repeated results if the session ends before the server has repeated all. If none of
// them is known, they are dropped and counted as a gap: the server repeats the oldest first, which were pulled before.
func (s *Session) cutReplay() (fresh []item) {
	if len(s.replay) == 0 {
		return nil
	}
	known := s.knownReplay()
	if known > 0 || len(s.recent) == 0 {
		fresh = s.replay[known:]
	} else {
		s.loss.Gaps++
	}
	s.replay, s.replayed = nil, false
	return fresh
}

// knownReplay returns the number of repeated results up to the last known one. A page that got lost is not among the
// known results, so their longest common end can be shorter than the known part of the repeated ones.
func (s *Session) knownReplay() (known int) {
	longest := 0
	for end := 1; end <= len(s.replay); end++ {
		n := 0
		for n < min(end, len(s.recent)) && s.replay[end-1-n].repeat == s.recent[len(s.recent)-1-n] {
			n++
		}
		if n > longest {
			known, longest = end, n
		}
	}
	return known
}

func (j *Job) acceptItem(page *Page, it item) {
	s := j.session
	if it.job != 0 && it.job != j.number {
		s.loss.Stale++
		return
	}
	if it.job == j.number && !j.begun {
		j.begun = true
		if _, is := it.result.(*commandEcho); !is {
			s.loss.Overflows++
		}
	}
	switch result := it.result.(type) {
	case nil, *commandEcho, *inputStatus, *welcome:
	case *status:
		j.status = result
	case *shutdown:
		j.finish(End{Reason: EndServerStopped, Message: result.message})
	case *Message:
		// The message of an earlier job may come before the first result of this one.
		if j.begun && it.job == 0 && strings.HasSuffix(result.Text, "current job was interrupted.") {
			j.unhealthy = result.Text
			return
		}
		if strings.HasPrefix(result.Text, "arthas server is going to shutdown") {
			j.finish(End{Reason: EndServerStopped, Message: result.Text})
		}
		if it.job == j.number {
			page.Results = append(page.Results, result)
		}
	default:
		if bad, is := result.(*Malformed); is && bad.Type == "status" {
			// The job ended, and how is not known.
			j.status = &status{code: -1, message: bad.Err.Error()}
		}
		if countsForLimit(result) {
			j.received++
		}
		page.Unbegun += dropUnbegun(result, CostBound{Elapsed: page.Elapsed})
		page.Results = append(page.Results, result)
	}
}

// countsForLimit reports whether a result counts for the limit of a job.
func countsForLimit(result Result) bool {
	switch m := result.(type) {
	case *Monitor, *Trace, *CallStack, *Watch, *Records:
		return true
	case *Malformed:
		return slices.Contains([]string{"monitor", "trace", "stack", "watch", "tt"}, m.Type)
	default:
		return false
	}
}

// dropUnbegun removes durations that are none, and returns their number.
func dropUnbegun(result Result, bound CostBound) (unbegun int64) {
	check := func(cost *Cost, calls int64) {
		if cost.Known && !bound.Sum(*cost, calls).Known {
			*cost = Cost{}
			unbegun++
		}
	}
	switch r := result.(type) {
	case *Monitor:
		for i := range r.Methods {
			check(&r.Methods[i].Sum, r.Methods[i].Calls)
		}
	case *Trace:
		for i := range r.Nodes {
			node := &r.Nodes[i]
			before := unbegun
			check(&node.Last, 1)
			check(&node.Max, 1)
			check(&node.Total, node.Calls)
			if unbegun > before {
				node.Last, node.Min, node.Max, node.Total, unbegun = Cost{}, Cost{}, Cost{}, Cost{}, before+1
			}
		}
	case *Watch:
		check(&r.Cost, 1)
	case *Records:
		for i := range r.Calls {
			check(&r.Calls[i].Cost, 1)
		}
	}
	return unbegun
}

// reason returns why the job ended, after its status.
func (j *Job) reason() End {
	switch {
	case j.status.code != 0:
		return End{Reason: EndFailed, Code: j.status.code, Message: j.status.message}
	case j.unhealthy != "":
		return End{Reason: EndUnhealthy, Message: j.unhealthy}
	case j.asked:
		return End{Reason: EndInterrupted, Message: j.status.message}
	}
	// A job with the largest limit does not reach it. It has ended for another reason: probably another client interrupted it.
	if j.limit > 0 && j.limit < int64(MaxLimit) {
		j.session.loss.Results += max(0, j.limit-j.received)
	}
	return End{Reason: EndFinished, Message: j.status.message}
}

// finish ends the job, unless it has ended. The session can then start another one.
func (j *Job) finish(end End) {
	s := j.session
	if j.end != nil {
		return
	}
	j.end = &end
	if s.job == j {
		s.job = nil
	}
	if s.state == sessionRunning {
		s.state = sessionReady
	}
}

// Interrupt ends the job. Its last results and its end are still to be pulled.
func (j *Job) Interrupt(ctx context.Context) error {
	s := j.session
	s.mu.Lock()
	ended := j.end != nil
	s.mu.Unlock()
	if ended {
		return nil
	}
	return s.Interrupt(ctx)
}
