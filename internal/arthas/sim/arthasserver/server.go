// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasserver

import (
	"maps"
	"runtime"
	"slices"
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

// opened returns the number of open sessions, without those of single commands, which end by themselves.
func (srv *Server) opened() (n int64) {
	for _, s := range srv.sessions {
		if s.made > 0 {
			n++
		}
	}
	return n
}

// Lives returns the truths of all lives of the program, the newest last.
func (srv *Server) Lives() (truths []Truth) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	for _, p := range srv.past {
		truths = append(truths, p.snapshot())
	}
	now := srv.program.snapshot()
	if !srv.closed {
		now.Sessions = srv.opened()
	}
	return append(truths, now)
}

// unlocked runs a function without the server's lock.
func (srv *Server) unlocked(f func()) {
	srv.mu.Unlock()
	defer srv.mu.Lock()
	f()
}

// wait waits for a time, or until the server closes.
func (srv *Server) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-srv.done:
	}
}

// StartProfiler starts the profiler as another client would, if it does not run.
func (srv *Server) StartProfiler() {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	if p := &srv.program.profiler; !p.isRunning(srv.settings.now()) {
		*p = profiler{started: srv.settings.now(), running: true, stacks: map[string]time.Duration{}}
	}
}

// StopProfiler stops the profiler as another client would.
func (srv *Server) StopProfiler() {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	srv.program.profiler.running = false
}

// IsProfiling reports whether the profiler runs.
func (srv *Server) IsProfiling() bool {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	return srv.program.profiler.isRunning(srv.settings.now())
}
