// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasserver

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

const (
	// headerTimeout limits the time until the header of a request has arrived.
	headerTimeout = 10 * time.Second
	// endTimeout limits the time until the last answers are sent.
	endTimeout = time.Second
)

// Serve serves until ctx ends or the listener fails. It closes the server, and waits for all its goroutines.
func (srv *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{Handler: srv, ReadHeaderTimeout: headerTimeout}
	served := make(chan error, 1)
	go func() {
		defer close(served)
		served <- server.Serve(listener)
	}()
	var err error
	select {
	case err = <-served:
	case <-ctx.Done():
	}
	srv.Close()
	ending, end := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer end()
	if server.Shutdown(ending) != nil {
		_ = server.Close() // a client reads too slowly, or not at all
	}
	srv.requestsOpen.Wait()
	for range served { // it may have begun after the shutdown
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
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

// received counts the results of an answer that was sent completely.
func (srv *Server) received(answer result) {
	body, _ := answer["body"].(result)
	results, _ := body["results"].([]*queued)
	srv.mu.Lock()
	defer srv.mu.Unlock()
	for _, q := range results {
		if !q.received {
			q.received = true
			q.life.truth.count(q.result)
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
