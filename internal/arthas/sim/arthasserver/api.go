// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasserver

import (
	"encoding/json"
	"strings"
	"time"
)

// request is the body of a request.
type request struct {
	Action      string  `json:"action"`
	RequestID   string  `json:"requestId"`
	SessionID   string  `json:"sessionId"`
	ConsumerID  string  `json:"consumerId"`
	Command     *string `json:"command"`
	ExecTimeout int     `json:"execTimeout"`
	UserID      string  `json:"userId"`
}

// defaultExecTimeout is the limit of an exec without one.
const defaultExecTimeout = 30 * time.Second

// handle carries out a request.
func (srv *Server) handle(body []byte, user string) (action string, answer result) {
	text := strings.TrimPrefix(string(body), "\ufeff")
	if strings.TrimSpace(text) == "" {
		return "", failed("Process request error: parse request failed: request body is empty")
	}
	var r request
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return "", failed("Process request error: parse request failed: " + err.Error())
	}
	action = strings.ToLower(strings.TrimSpace(r.Action))
	srv.mu.Lock()
	srv.requests[action]++
	srv.mu.Unlock()
	if r.UserID == "" {
		r.UserID = user
	}
	answer = srv.act(action, r)
	if r.RequestID != "" {
		answer["requestId"] = r.RequestID
	}
	return action, answer
}

func (srv *Server) act(action string, r request) result {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	switch action {
	case "":
		return failed("'action' is required")
	case "init_session":
		return srv.initSession(r)
	case "exec", "async_exec", "interrupt_job", "pull_results", "session_info", "join_session", "close_session":
	default:
		return failed("unknown action: " + r.Action)
	}
	now := srv.settings.now()
	s := srv.sessions[r.SessionID]
	switch {
	case s != nil:
		s.used = now
	case r.SessionID != "":
		return failed("session not found: " + r.SessionID)
	case action != "exec":
		return failed("'sessionId' is required")
	default:
		s = &session{id: randomID(), life: srv.program, created: now, used: now}
		srv.sessions[s.id] = s
		defer srv.remove(s)
	}
	if r.UserID != "" {
		s.userID = r.UserID
	}
	switch action {
	case "exec":
		return srv.exec(s, r)
	case "async_exec":
		return srv.asyncExec(s, r)
	case "interrupt_job":
		if s.job == nil {
			return failed("no foreground job is running")
		}
		number := s.job.number
		s.job.end(srv, 0, "")
		return result{"state": "SUCCEEDED", "body": result{"jobId": number, "jobStatus": "TERMINATED"}}
	case "pull_results":
		return srv.pull(s, r)
	case "session_info":
		body := result{"pid": srv.settings.ProcessID, "createTime": s.created.UnixMilli(), "lastAccessTime": s.used.UnixMilli()}
		return result{"state": "SUCCEEDED", "sessionId": s.id, "body": body}
	case "join_session":
		return result{"state": "SUCCEEDED", "sessionId": s.id, "consumerId": s.join(now, true).id}
	default:
		srv.remove(s)
		return result{"state": "SUCCEEDED"}
	}
}

func (srv *Server) initSession(r request) result {
	now := srv.settings.now()
	s := &session{id: randomID(), life: srv.program, created: now, used: now, userID: r.UserID}
	srv.sessions[s.id] = s
	c := s.join(now, false)
	s.send(srv, result{"type": "message", "jobId": 0, "message": "Welcome to arthas!"})
	s.send(srv, result{
		"type": "welcome", "jobId": 0, "mainClass": "demo.Shop", "pid": jsonText(srv.settings.ProcessID), "version": srv.settings.Version,
		"time":      now.In(srv.settings.Zone).Format("2006-01-02 15:04:05.000"),
		"tutorials": "https://arthas.aliyun.com/doc/arthas-tutorials.html", "wiki": "https://arthas.aliyun.com/doc",
	})
	s.input(srv, "ALLOW_INPUT")
	return result{"state": "SUCCEEDED", "sessionId": s.id, "consumerId": c.id}
}

func jsonText(n int) string {
	text, _ := json.Marshal(n) // a number has no error
	return string(text)
}

// newJob makes the job of a command, or returns why there is none.
func (srv *Server) newJob(s *session, r request) (j *job, problem string) {
	if r.Command == nil {
		return nil, `Cannot invoke "String.length()" because "<parameter1>" is null`
	}
	srv.settings.OnCommand(*r.Command)
	line := Parse(*r.Command)
	if line.Command == "" {
		return nil, "Index 0 out of bounds for length 0"
	}
	srv.jobs++
	if !srv.knows(line.Command) {
		return nil, "java.lang.IllegalArgumentException: " + line.Command + ": command not found"
	}
	return &job{number: srv.jobs, session: s, line: line, limit: 1 << 30, ended: make(chan struct{})}, ""
}

func (srv *Server) knows(command string) bool {
	switch command {
	case "version", "session", "reset", "monitor", "trace", "stack", "watch", "tt", "dashboard", "sc", "sm", "profiler":
		return true
	}
	return srv.answers[command] != nil
}

func (srv *Server) exec(s *session, r request) result {
	body := result{}
	if r.Command != nil {
		body["command"] = *r.Command
	}
	answer := result{"sessionId": s.id, "body": body}
	if s.job != nil {
		answer["state"], answer["message"] = "REFUSED", "Another job is running."
		return answer
	}
	j, problem := srv.newJob(s, r)
	if problem != "" {
		answer["state"], answer["message"] = "FAILED", "Exec command failed:"+problem
		return answer
	}
	j.isPacked = true
	s.job = j
	s.input(srv, "ALLOW_INTERRUPT")
	j.run(srv)
	limit := defaultExecTimeout
	if r.ExecTimeout > 0 {
		limit = time.Duration(r.ExecTimeout) * time.Millisecond
	}
	expired := !srv.waitForEnd(j, limit)
	answer["state"] = "SUCCEEDED"
	if expired {
		j.end(srv, 0, "")
		answer["state"], answer["message"], body["timeout"] = "INTERRUPTED", "The job is exceeded time limit, force interrupt", limit.Milliseconds()
	}
	body["jobId"], body["jobStatus"], body["timeExpired"], body["results"] = j.number, "TERMINATED", expired, j.packed
	if j.line.Command == "stop" {
		srv.endSessions()
		srv.stopped = true
	}
	return answer
}

// waitForEnd waits until a job ends, without the server's lock.
func (srv *Server) waitForEnd(j *job, limit time.Duration) (ended bool) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	srv.unlocked(func() {
		select {
		case <-j.ended:
			ended = true
		case <-timer.C:
		case <-srv.done:
		}
	})
	return ended || j.over
}

func (srv *Server) asyncExec(s *session, r request) result {
	body := result{}
	if r.Command != nil {
		body["command"] = *r.Command
	}
	answer := result{"sessionId": s.id, "body": body}
	if s.job != nil {
		answer["state"], answer["message"] = "REFUSED", "Another job is running."
		return answer
	}
	j, problem := srv.newJob(s, r)
	if problem != "" {
		answer["state"], answer["message"] = "FAILED", "Async exec command failed:"+problem
		s.send(srv, result{"type": "command", "jobId": 0, "command": body["command"], "state": "FAILED", "message": answer["message"]})
		return answer
	}
	body["jobId"], body["jobStatus"], answer["state"] = j.number, "READY", "SCHEDULED"
	s.send(srv, result{"type": "command", "jobId": j.number, "command": body["command"], "state": "SCHEDULED"})
	s.job = j
	s.input(srv, "ALLOW_INTERRUPT")
	j.run(srv)
	return answer
}

func (srv *Server) pull(s *session, r request) result {
	if r.ConsumerID == "" {
		return failed("'consumerId' is required")
	}
	for _, c := range s.consumers {
		if c.id == r.ConsumerID {
			var page []*queued
			srv.pulls++
			srv.most = max(srv.most, srv.pulls)
			srv.unlocked(func() { page = srv.poll(c) })
			srv.pulls--
			return result{"state": "SUCCEEDED", "sessionId": s.id, "consumerId": c.id, "body": result{"results": page}}
		}
	}
	return failed("consumer not found: " + r.ConsumerID)
}
