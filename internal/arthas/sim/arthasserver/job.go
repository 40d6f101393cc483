// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasserver

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// job is a command that runs, or ran.
type job struct {
	number  int
	session *session
	line    Line
	target  target
	limit   int
	sent    int
	// packed has the results of an exec, which do not go to the queue.
	packed   []*queued
	isPacked bool
	over     bool
	// ended is closed at the end.
	ended chan struct{}
	// counts are those of the cycle of a monitor, by class and method. The first call makes the first.
	counts map[string]*count
	// inFlight is the number of calls that were under way when the job began, and have not ended.
	inFlight int
}

type count struct {
	class, method            string
	total, succeeded, failed int
	cost                     time.Duration
	last                     time.Time
}

// send sends a result of the job. A full exec drops the newest.
func (j *job) send(srv *Server, r result) {
	r["jobId"] = j.number
	if !j.isPacked {
		j.session.send(srv, r)
	} else if len(j.packed) < execLength {
		j.packed = append(j.packed, &queued{result: r, life: j.session.life})
	}
}

// data sends a result that counts for the limit.
func (j *job) data(srv *Server, r result) {
	if j.over {
		return
	}
	j.sent++
	j.send(srv, r)
	if j.sent >= j.limit {
		j.end(srv, 0, "")
	}
}

// end ends the job. Its classes stay instrumented.
func (j *job) end(srv *Server, code int, message string) {
	if j.over {
		return
	}
	j.over = true
	status := result{"type": "status", "statusCode": code}
	if message != "" {
		status["message"] = message
	}
	j.send(srv, status)
	if j.session.job == j {
		j.session.job = nil
		j.session.input(srv, "ALLOW_INPUT")
	}
	close(j.ended)
}

const noClass = "No class or method is affected"

// run begins the job.
func (j *job) run(srv *Server) {
	l := j.line
	if l.Redirected != "" {
		srv.redirected = append(srv.redirected, l.Redirected)
	}
	switch l.Command {
	case "version":
		j.send(srv, result{"type": "version", "version": srv.settings.Version})
	case "session":
		j.send(srv, result{"type": "session", "javaPid": srv.settings.ProcessID, "sessionId": j.session.id, "tunnelConnected": false})
	case "reset":
		pattern := "*"
		if len(l.Arguments) > 0 {
			pattern = l.Arguments[0]
		}
		_, isRegexp := l.Options["-E"]
		classes := srv.program.reset(pattern, isRegexp, srv.running())
		j.send(srv, result{"type": "reset", "affect": result{"classCount": classes, "cost": 1, "listenerId": 0, "methodCount": 0}})
	case "monitor", "trace", "stack", "watch", "tt":
		j.instrument(srv)
		return
	case "dashboard":
		j.limit = option(l, "-n", 1<<30)
		j.begin(srv, time.Duration(option(l, "-i", 5000))*srv.settings.Second/1000, func() { j.data(srv, srv.dashboard()) })
		return
	case "sc", "sm":
		j.search(srv)
	case "profiler":
		j.profile(srv)
		return
	default:
		j.send(srv, srv.answers[l.Command]())
	}
	j.end(srv, 0, "")
}

// instrument begins a job that instruments classes.
func (j *job) instrument(srv *Server) {
	l := j.line
	if j.recorded(srv) {
		return
	}
	if len(l.Arguments) < 1 {
		j.end(srv, -10, "The argument 'class-pattern' is required, description: Class name pattern, use either '.' or '/' as separator")
		return
	}
	for _, name := range []string{"-c", "-n"} {
		if value, has := l.Options[name]; has {
			if _, err := strconv.Atoi(value); err != nil {
				j.end(srv, 1, "Error during processing the command: com.taobao.middleware.cli.CLIException, message:Cannot inject value for option 'cycle', please check $HOME/logs/arthas/arthas.log for more details.")
				return
			}
		}
	}
	_, isRegexp := l.Options["-E"]
	method := "*"
	if len(l.Arguments) > 1 {
		method = l.Arguments[1]
	}
	j.target = newTarget(l.Arguments[0], method, isRegexp)
	j.limit = option(l, "-n", 100)
	if most, matching := option(l, "-m", 0), len(srv.program.matching(j.target.class, isRegexp)); most > 0 && matching > most {
		over := fmt.Sprintf("The number of matched classes is %d, greater than the limit value %d. Try to change the limit with option '-m <arg>'.", matching, most)
		j.send(srv, result{"type": "enhancer", "effect": result{"classCount": 0, "methodCount": 0, "cost": 1, "overLimitMsg": over}, "success": false})
		j.end(srv, -1, over)
		return
	}
	classes, methods := srv.program.enhance(j.target)
	srv.listeners++
	effect := result{"classCount": classes, "cost": 1, "listenerId": srv.listeners, "methodCount": methods}
	if methods == 0 {
		j.send(srv, result{"type": "enhancer", "effect": effect, "success": false, "message": noClass})
		j.end(srv, -1, noClass+", try:\n1. Execute `sm CLASS_NAME METHOD_NAME` to make sure the method you are tracing actually exists (it might be in your parent class).")
		return
	}
	j.inFlight = srv.settings.InFlight
	j.send(srv, result{"type": "enhancer", "effect": effect, "success": true})
	if l.Command == "monitor" {
		j.begin(srv, time.Duration(option(l, "-c", 60))*srv.settings.Second, func() { j.cycle(srv) })
	}
}

func option(l Line, name string, otherwise int) int {
	if n, err := strconv.Atoi(l.Options[name]); err == nil {
		return n
	}
	return otherwise
}

// begin starts to call a function in each interval, unless the server is closed.
func (j *job) begin(srv *Server, every time.Duration, f func()) {
	if !srv.closed {
		srv.tickers.Go(func() { j.tick(srv, every, f) })
	}
}

// tick calls a function with the server's lock, in each interval until the job ends.
func (j *job) tick(srv *Server, every time.Duration, f func()) {
	ticker := time.NewTicker(max(every, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			srv.mu.Lock()
			if !j.over {
				f()
			}
			srv.mu.Unlock()
		case <-j.ended:
			return
		case <-srv.done:
			return
		}
	}
}

// call reports a call to the job, and those that it makes. An unbegun call has the time since boot as its cost.
func (j *job) call(srv *Server, c Call, callers []Call, at time.Time, unbegun bool) {
	if j.over || j.target.class == "" {
		return
	}
	matches := j.target.matches(c)
	if !matches || j.line.Command != "trace" { // the callees of a traced call are in its tree
		for _, child := range c.Children {
			child.Thread, child.ThreadID = c.Thread, c.ThreadID
			j.call(srv, child, append([]Call{c}, callers...), at, false)
		}
	}
	if j.over || !matches {
		return
	}
	if j.inFlight > 0 {
		j.inFlight, unbegun = j.inFlight-1, true
	}
	cost := c.Cost
	if unbegun {
		cost = srv.settings.SinceBoot
	}
	ms := float64(cost) / float64(time.Millisecond)
	switch j.line.Command {
	case "monitor":
		j.count(c, cost, at)
	case "trace":
		j.data(srv, srv.trace(c, cost, at, j.target))
	case "stack":
		r := srv.threadFields(c)
		r["threadId"] = strconv.FormatInt(c.ThreadID, 10)
		r["type"], r["ts"], r["cost"] = "stack", srv.at(at), 0.0
		r["stackTrace"] = stackTrace(c, callers)
		j.data(srv, r)
	case "watch":
		point := "AtExit"
		if c.Throws != "" {
			point = "AtExceptionExit"
		}
		j.data(srv, result{"type": "watch", "ts": srv.at(at), "cost": ms, "className": c.Class, "methodName": c.Method, "accessPoint": point, "value": j.watched()})
	case "tt":
		record := result{
			"index": 1000 + srv.recorded, "timestamp": srv.at(at), "cost": ms, "className": c.Class, "methodName": c.Method, "object": "0x4644e38",
			"params": []any{result{"expand": 1, "object": "w1"}}, "return": c.Throws == "", "throw": c.Throws != "", "returnObj": "null", "throwExp": "null",
		}
		if c.Throws != "" {
			record["throwExp"] = c.Throws + ": " + c.Message
		}
		srv.records = append(srv.records, record)
		srv.recorded++
		j.data(srv, result{"type": "tt", "first": j.sent == 0, "timeFragmentList": []any{record}})
	}
}

// watched returns the value of a watched call. A list of three with brackets around each begins with IDs: every second call
// has none.
func (j *job) watched() string {
	const value = "@ArrayList[\n]"
	if len(j.line.Arguments) < 3 || !strings.HasPrefix(j.line.Arguments[2], "{(") {
		return value
	}
	ids := [2]string{"null", "null"}
	if j.sent%2 == 0 {
		ids = [2]string{fmt.Sprintf("@String[%032x]", j.sent+1), fmt.Sprintf("@String[%016x]", j.sent+1)}
	}
	return fmt.Sprintf("@ArrayList[\n    %s,\n    %s,\n    @ArrayList[\n    ],\n]", ids[0], ids[1])
}

func (j *job) count(c Call, cost time.Duration, at time.Time) {
	if j.counts == nil {
		j.counts = map[string]*count{}
	}
	key := c.Class + " " + c.Method
	n := j.counts[key]
	if n == nil {
		n = &count{class: c.Class, method: c.Method}
		j.counts[key] = n
	}
	n.total++
	n.cost += cost
	n.last = at
	if c.Throws != "" {
		n.failed++
	} else {
		n.succeeded++
	}
}

// cycle ends a cycle of a monitor. Before the first call it sends nothing.
func (j *job) cycle(srv *Server) {
	if len(j.counts) == 0 {
		return
	}
	rows := []any{}
	for _, n := range j.counts {
		rows = append(rows, result{
			"className": n.class, "methodName": n.method, "total": n.total, "success": n.succeeded, "failed": n.failed,
			"cost": float64(n.cost) / float64(time.Millisecond), "timestamp": srv.at(n.last),
		})
		*n = count{class: n.class, method: n.method, last: n.last}
	}
	j.data(srv, result{"type": "monitor", "monitorDataList": rows})
}

// recorded answers a tt that asks for recorded calls.
func (j *job) recorded(srv *Server) bool {
	l := j.line
	if l.Command != "tt" {
		return false
	}
	_, isList := l.Options["-l"]
	_, isAll := l.Options["--delete-all"]
	_, isDelete := l.Options["-d"]
	index, isOne := l.Options["-i"]
	found := -1
	for i, record := range srv.records {
		if strconv.Itoa(record["index"].(int)) == index {
			found = i
		}
	}
	switch {
	case isList:
		list := []any{}
		for _, record := range srv.records {
			list = append(list, record)
		}
		j.send(srv, result{"type": "tt", "first": true, "timeFragmentList": list})
		j.send(srv, result{"type": "row_affect", "rowCount": len(list)})
	case isAll:
		j.send(srv, result{"type": "message", "message": "Time fragments are cleaned."})
		j.send(srv, result{"type": "row_affect", "rowCount": len(srv.records)})
		srv.records = nil
	case isOne && found < 0:
		j.end(srv, 1, fmt.Sprintf("Time fragment[%s] does not exist.", index))
	case isDelete:
		srv.records = append(srv.records[:found], srv.records[found+1:]...)
		j.send(srv, result{"type": "message", "message": fmt.Sprintf("Time fragment[%s] successfully deleted.", index)})
		j.send(srv, result{"type": "row_affect", "rowCount": 1})
	case isOne:
		j.send(srv, result{"type": "tt", "expand": 1, "timeFragment": srv.records[found]})
		j.send(srv, result{"type": "row_affect", "rowCount": 1})
	default:
		return false
	}
	j.end(srv, 0, "")
	return true
}

// search answers sc and sm.
func (j *job) search(srv *Server) {
	l := j.line
	if len(l.Arguments) == 0 {
		return
	}
	_, isRegexp := l.Options["-E"]
	_, details := l.Options["-d"]
	rows, names := 0, []any{}
	for _, c := range srv.program.matching(l.Arguments[0], isRegexp) {
		switch {
		case l.Command == "sm":
			for _, method := range c.methods {
				if len(l.Arguments) < 2 || matches(l.Arguments[1], method, isRegexp) {
					rows++
					j.send(srv, result{"type": "sm", "detail": false, "methodInfo": result{"constructor": method == "<init>", "declaringClass": c.name, "descriptor": "()V", "methodName": method}})
				}
			}
		case details:
			rows++
			j.send(srv, result{"type": "sc", "detailed": true, "withField": false, "segment": 0, "classInfo": classInfo(c.name)})
		default:
			rows++
			names = append(names, c.name)
		}
	}
	if len(names) > 0 {
		j.send(srv, result{"type": "sc", "detailed": false, "withField": false, "segment": 0, "classNames": names})
	}
	j.send(srv, result{"type": "row_affect", "rowCount": rows})
}

func classInfo(name string) result {
	return result{
		"annotation": false, "annotations": []any{}, "anonymousClass": false, "array": false, "classInfo": name, "classLoaderHash": "30946e09",
		"classloader": []any{"jdk.internal.loader.ClassLoaders$AppClassLoader@30946e09"}, "codeSource": "/app/", "enum": false, "interface": false,
		"interfaces": []any{}, "localClass": false, "memberClass": false, "modifier": "public", "name": name, "primitive": false,
		"simpleName": name[strings.LastIndexByte(name, '.')+1:], "superClass": []any{"java.lang.Object"}, "synthetic": false,
	}
}

// profile answers the command profiler.
func (j *job) profile(srv *Server) {
	const failed = 1
	p, now := &srv.program.profiler, srv.settings.now()
	action, arguments := "", ""
	if len(j.line.Arguments) > 0 {
		action = j.line.Arguments[0]
	}
	if len(j.line.Arguments) > 1 {
		arguments = j.line.Arguments[1]
	}
	words := strings.Split(arguments, ",")
	answer := result{"type": "profiler", "action": action}
	switch {
	case action == "status":
		answer["executeResult"] = "Profiler is not active\n"
		if p.isRunning(now) {
			answer["executeResult"] = fmt.Sprintf("Profiling is running for %d seconds\n", int(now.Sub(p.started)/time.Second))
		}
	case action != "execute":
		j.end(srv, failed, "AsyncProfiler error: the simulated server has no "+action)
		return
	case words[0] == "start" && p.isRunning(now):
		j.end(srv, failed, "AsyncProfiler error: Profiler already started")
		return
	case words[0] == "start" && !slices.ContainsFunc([]string{"cpu", "wall", "alloc", "lock"}, func(event string) bool {
		return slices.Contains(words, "event="+event)
	}):
		j.end(srv, failed, "AsyncProfiler error: Unsupported event type")
		return
	case words[0] == "start":
		*p = profiler{started: now, running: true, stacks: map[string]time.Duration{}}
		for _, word := range words {
			if seconds, is := strings.CutPrefix(word, "timeout="); is {
				n, _ := strconv.Atoi(seconds) // clients send numbers
				p.until = now.Add(time.Duration(n) * srv.settings.Second)
			}
		}
		srv.program.truth.Profiles++
		answer["actionArg"], answer["executeResult"] = arguments, "Profiling started\n"
	case words[0] == "stop" && p.started.IsZero():
		j.end(srv, failed, "AsyncProfiler error: Profiler has not started")
		return
	case words[0] == "stop":
		if p.isRunning(now) {
			srv.program.truth.ProfilesStopped++
			for _, d := range p.stacks {
				srv.program.truth.Profiled += d
			}
		}
		p.running = false
		answer["actionArg"], answer["executeResult"] = arguments, p.text()
	default: // the real profiler ignores unknown words
		answer["actionArg"], answer["executeResult"] = arguments, "\n"
	}
	j.send(srv, answer)
	j.end(srv, 0, "")
}
