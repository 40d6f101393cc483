// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasserver

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// Settings of a [Server]. A field that is 0 has the value of the real server.
type Settings struct {
	// Classes has the methods of each class of the program.
	Classes map[string][]string
	// Version is the version of Arthas; default 4.3.4. ProcessID is of the program; default 12058.
	Version   string
	ProcessID int
	// Zone is the zone of the program; default UTC. Instants makes times instants, as before version 4.
	Zone     *time.Location
	Instants bool
	// SinceBoot is the time since the host booted; default 20 minutes.
	SinceBoot time.Duration
	// Loops is the number of event loops; default two for each processor.
	Loops int
	// PullWait is how long a pull waits for its first result; default 2 s. Gather is how long it waits for more; default
	// 100 ms. Patience is how long a full queue is healthy without a pull; default 1 s. Second is the length of a second
	// of intervals of commands.
	PullWait, Gather, Patience, Second time.Duration
	// Username and Password are wanted if they are not empty. LocalToo wants them of local connections too.
	Username, Password string
	LocalToo           bool
	// SameID makes restarted programs have the same process ID, as in a container.
	SameID bool
	// InFlight is the number of calls that are under way when a command instruments classes: each command reports so many
	// with the time since boot as their cost.
	InFlight int
	// Faults are used one after another, each after FaultEvery answers, which is at least 1. FaultTimes limits their number;
	// 0 means without end.
	Faults                 []Fault
	FaultEvery, FaultTimes int
	// OnCommand is called for each command, from many goroutines; nil means no call.
	OnCommand func(command string)
	// Now is the clock for what expires; default time.Now.
	Now func() time.Time
}

func (s Settings) now() time.Time { return s.Now() }

// Server is a simulated server: a handler of HTTP requests. Close it after use.
type Server struct {
	settings Settings
	// loops has an element for each blocked event loop.
	loops chan struct{}
	// done is closed by Close.
	done    chan struct{}
	tickers sync.WaitGroup
	// requestsOpen are the requests that have no answer yet.
	requestsOpen sync.WaitGroup

	mu      sync.Mutex
	program *program
	// past are the earlier lives of the program.
	past     []*program
	sessions map[string]*session
	cookies  map[string]bool
	jobs     int
	// listeners counts the commands that instrumented classes.
	listeners int
	// records are the recorded calls in the program's memory. recorded is the number of all so far.
	records    []result
	recorded   int
	redirected []string
	answers    map[string]func() result
	// faults are injected ones, by action. replies and turns count those that may have a fault, and those that had one.
	faults         map[string][]Fault
	replies, turns int
	stopped        bool
	closed         bool
	requests       map[string]int
	// pulls is the number of open pulls, and most its maximum.
	pulls, most int
}

// New returns a server.
func New(settings Settings) *Server {
	setDefault(&settings.Version, "4.3.4")
	setDefault(&settings.ProcessID, 12058)
	setDefault(&settings.Zone, time.UTC)
	setDefault(&settings.SinceBoot, 20*time.Minute)
	setDefault(&settings.Loops, 2*runtime.NumCPU())
	setDefault(&settings.PullWait, 2*time.Second)
	setDefault(&settings.Gather, 100*time.Millisecond)
	setDefault(&settings.Patience, time.Second)
	setDefault(&settings.Second, time.Second)
	setDefault(&settings.FaultEvery, 1)
	if settings.Now == nil {
		settings.Now = time.Now
	}
	if settings.OnCommand == nil {
		settings.OnCommand = func(string) {}
	}
	srv := &Server{
		settings: settings, loops: make(chan struct{}, settings.Loops), done: make(chan struct{}),
		program: newProgram(settings.Classes, settings.Now(), settings.ProcessID), faults: map[string][]Fault{}, requests: map[string]int{},
	}
	srv.answers = srv.makeAnswers()
	srv.forget()
	return srv
}

func setDefault[T comparable](value *T, otherwise T) {
	var zero T
	if *value == zero {
		*value = otherwise
	}
}

func (srv *Server) forget() {
	srv.sessions, srv.cookies = map[string]*session{}, map[string]bool{}
	srv.jobs, srv.records, srv.recorded, srv.stopped = 0, nil, 0, false
}

// Close ends everything that waits.
func (srv *Server) Close() {
	srv.mu.Lock()
	srv.endSessions()
	srv.closed = true
	close(srv.done)
	srv.mu.Unlock()
	srv.tickers.Wait()
}

// Restart forgets all sessions, as if the program was started again and Arthas attached.
func (srv *Server) Restart() {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	srv.restart()
}

// restart is Restart for a caller that holds the lock.
func (srv *Server) restart() {
	srv.endSessions()
	if !srv.settings.SameID {
		srv.settings.ProcessID++
	}
	srv.past = append(srv.past, srv.program)
	srv.program = newProgram(srv.settings.Classes, srv.settings.now(), srv.settings.ProcessID)
	srv.forget()
}

// SetZone changes the zone of the program, as the begin and the end of daylight saving time do.
func (srv *Server) SetZone(zone *time.Location) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	srv.settings.Zone = zone
}

func (srv *Server) endSessions() {
	srv.program.truth.Sessions = srv.opened()
	for _, s := range srv.sessions {
		srv.remove(s)
	}
}

func (srv *Server) remove(s *session) {
	if s.job != nil {
		s.job.end(srv, 0, "")
	}
	for _, c := range s.consumers {
		c.closed = true
		c.wake()
	}
	delete(srv.sessions, s.id)
}

// Call is a call of the program. All jobs that traced its method report it.
func (srv *Server) Call(c Call) { srv.call(c, false) }

// CallInFlight is the end of a call that began before its class was instrumented.
func (srv *Server) CallInFlight(c Call) { srv.call(c, true) }

func (srv *Server) call(c Call, unbegun bool) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	srv.program.made(c)
	if p := &srv.program.profiler; p.isRunning(srv.settings.now()) {
		p.sample(c, "java/lang/Thread.run_[0];")
	}
	for _, s := range srv.sessions {
		if s.job != nil {
			s.job.call(srv, c, nil, srv.settings.now(), unbegun)
		}
	}
}

// EvictConsumers removes the queues that no client has pulled for a time, and sessions that were idle for a time.
func (srv *Server) EvictConsumers(queues, sessions time.Duration) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	now := srv.settings.now()
	for _, s := range srv.sessions {
		s.consumers = slices.DeleteFunc(s.consumers, func(c *consumer) bool { return !c.polling && now.Sub(c.used) > queues })
		if s.job == nil && now.Sub(s.used) > sessions {
			srv.remove(s)
		}
	}
}

// Instrumented returns the names of the instrumented classes.
func (srv *Server) Instrumented() (names []string) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	for _, c := range srv.program.classes {
		if c.instrumented {
			names = append(names, c.name)
		}
	}
	return names
}

// Redirected returns the files that commands wrote to.
func (srv *Server) Redirected() []string {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	return slices.Clone(srv.redirected)
}

// Sessions returns the number of sessions, and Jobs those of them with a job.
func (srv *Server) Sessions() (sessions, jobs int) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	return len(srv.sessions), len(srv.running())
}

// Recorded returns the number of recorded calls in the program's memory.
func (srv *Server) Recorded() int {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	return len(srv.records)
}

// Queued returns the number of results in the queues of a session.
func (srv *Server) Queued(id string) (n int) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	if s := srv.sessions[id]; s != nil {
		for _, c := range s.consumers {
			n += len(c.queue)
		}
	}
	return n
}

// Requests returns how many requests each action had, and the most pulls that were open at the same time.
func (srv *Server) Requests() (actions map[string]int, mostPulls int) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	return maps.Clone(srv.requests), srv.most
}

// running returns what the running jobs instrument.
func (srv *Server) running() (targets []target) {
	for _, s := range srv.sessions {
		if s.job != nil {
			targets = append(targets, s.job.target)
		}
	}
	return targets
}

// maxBody is the length of a request that the server refuses.
const maxBody = 10 << 20

// ServeHTTP answers a request. Requests wait for an event loop.
func (srv *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !srv.enter() {
		abort(w)
		return
	}
	defer srv.requestsOpen.Done()
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return
	}
	select {
	case srv.loops <- struct{}{}:
		defer func() { <-srv.loops }()
	case <-srv.done:
		abort(w)
		return
	}
	w.Header().Set("Connection", "close")
	if len(body) > maxBody {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	allowed, malformed := srv.authenticate(r, w)
	switch {
	case malformed || srv.isStopped():
		abort(w)
	case !allowed:
		unauthorized(w)
	case r.URL.Path != "/api":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "Not found")
	case r.Method != http.MethodPost:
		srv.write(w, "", result{"state": "REFUSED", "message": "Unsupported http method: " + r.Method})
	default:
		action, answer := srv.handle(body, r.URL.Query().Get("userId"))
		if srv.isStopped() {
			abort(w)
			return
		}
		srv.write(w, action, answer)
	}
}

// enter notes an open request, unless the server is closed.
func (srv *Server) enter() bool {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	if !srv.closed {
		srv.requestsOpen.Add(1)
	}
	return !srv.closed
}

func (srv *Server) isStopped() bool {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	return srv.stopped
}

// authenticate reports whether a request is allowed, or has a malformed header.
func (srv *Server) authenticate(r *http.Request, w http.ResponseWriter) (allowed, malformed bool) {
	cookie, err := r.Cookie("asession")
	srv.mu.Lock()
	defer srv.mu.Unlock()
	known := err == nil && srv.hasCookie(cookie.Value)
	id := ""
	if !known {
		id = strings.ReplaceAll(randomID(), "-", "")
		http.SetCookie(w, &http.Cookie{Name: "asession", Value: id})
	}
	defer func() {
		if id != "" {
			srv.cookies[id] = allowed
		}
	}()
	if srv.settings.Username == "" || known && srv.cookies[cookie.Value] {
		return true, false
	}
	user, password := r.URL.Query().Get("username"), r.URL.Query().Get("password")
	if header := r.Header.Get("Authorization"); strings.HasPrefix(header, "Basic ") {
		decoded, err := base64.StdEncoding.DecodeString(header[len("Basic "):])
		var separated bool
		if user, password, separated = strings.Cut(string(decoded), ":"); err != nil || !separated {
			return false, true
		}
	}
	if user == "" && password == "" && !srv.settings.LocalToo {
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		return net.ParseIP(host).IsLoopback(), false
	}
	return user == srv.settings.Username && password == srv.settings.Password, false
}

func (srv *Server) hasCookie(id string) bool {
	_, has := srv.cookies[id]
	return has
}

func unauthorized(w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", `Basic realm="arthas webconsole"`)
	w.WriteHeader(http.StatusUnauthorized)
}

// abort closes the connection without an answer.
func abort(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		conn.Close()
	}
}

// write sends an answer, or a fault.
func (srv *Server) write(w http.ResponseWriter, action string, answer result) {
	fault := srv.fault(action)
	body, err := json.Marshal(answer)
	if err != nil {
		panic(fmt.Sprintf("answer of the simulated server: %v", err))
	}
	srv.happen(fault)
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	switch fault {
	case FaultLarge:
		srv.writeLarge(w)
	case FaultUnauthorized:
		unauthorized(w)
	case FaultClose:
		abort(w)
	case FaultCut:
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		_, _ = w.Write(body[:len(body)/2])
	case FaultEndless:
		_, _ = io.WriteString(w, `{"message":"`)
		for block := bytes.Repeat([]byte("x"), 64<<10); err == nil; {
			_, err = w.Write(block)
		}
	case FaultSlow:
		for i := 0; i < len(body) && err == nil; i++ {
			_, err = w.Write(body[i : i+1])
			_ = http.NewResponseController(w).Flush()
			srv.wait(srv.settings.PullWait)
			select {
			case <-srv.done:
				return
			default:
			}
		}
	case FaultWrongType:
		_, _ = w.Write(wrongTypes(body))
	case FaultNotJSON:
		_, _ = w.Write(body[1:])
	case FaultHTML:
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<html>proxy</html>")
	case FaultDeep:
		_, _ = io.WriteString(w, `{"body":`+strings.Repeat("[", 1<<20))
	default:
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		if _, err := w.Write(body); err == nil {
			srv.received(answer)
		}
	}
}

// wrongTypes makes the values of a monitor and of a status objects.
func wrongTypes(body []byte) []byte {
	text := string(body)
	for _, field := range []string{`"total":`, `"statusCode":`, `"cost":`} {
		text = strings.ReplaceAll(text, field, field+`{"not":"a number"},"x`+field[1:])
	}
	return []byte(text)
}
