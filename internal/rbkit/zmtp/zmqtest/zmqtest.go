// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package zmqtest has tests talk to libzmq, the reference of ZMTP, by Python's binding of
// it (Debian's python3-zmq).
package zmqtest

import (
	"bufio"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

//go:embed peer.py
var script string

// requirePeers is the environment variable that turns a missing peer into a failure.
const requirePeers = "CALLBRAID_REQUIRE_PEERS"

// python is Debian's: python3-zmq is installed for no other.
const python = "/usr/bin/python3"

// patience bounds the wait of a test.
const patience = 60 * time.Second

// Peer is a socket of libzmq in a process of its own.
type Peer struct {
	// Endpoint is the address of the socket, such as tcp://127.0.0.1:5555.
	Endpoint string

	t       testing.TB
	process *exec.Cmd
	stdin   io.WriteCloser
	lines   chan string // closed when the process has ended
	// answering is the goroutine of Answer.
	answering sync.WaitGroup
}

// Require skips the test where there is no libzmq, or fails it where
// CALLBRAID_REQUIRE_PEERS is set.
func Require(t testing.TB) {
	t.Helper()
	err := exec.CommandContext(t.Context(), python, "-c", "import zmq").Run()
	if err == nil {
		return
	}
	const remedy = "install python3-zmq (Debian: apt-get install python3-zmq)"
	if os.Getenv(requirePeers) != "" {
		t.Fatalf("expected libzmq for %s, since %s is set; %s: %v", python, requirePeers, remedy, err)
	}
	t.Skipf("no libzmq for %s: %s", python, remedy)
}

// Bind starts a socket of that type, as "PUB", bound to an address as "127.0.0.1:0"; the
// options are those of peer.py. It ends with the test, or with Stop.
func Bind(t testing.TB, socketType, address string, options ...string) *Peer {
	t.Helper()
	if strings.HasSuffix(address, ":0") {
		address = strings.TrimSuffix(address, "0") + "*"
	}
	return start(t, append([]string{socketType, "bind", "tcp://" + address}, options...))
}

// Connect starts a socket that connects to an address, as Bind.
func Connect(t testing.TB, socketType, address string, options ...string) *Peer {
	t.Helper()
	return start(t, append([]string{socketType, "connect", "tcp://" + address}, options...))
}

func start(t testing.TB, args []string) *Peer {
	t.Helper()
	Require(t)
	p := &Peer{t: t, process: exec.Command(python, append([]string{"-c", script}, args...)...), lines: make(chan string, 1<<16)}
	p.process.Stderr = os.Stderr
	stdin, err := p.process.StdinPipe()
	stdout, err2 := p.process.StdoutPipe()
	if err = errors.Join(err, err2); err == nil {
		err = p.process.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	p.stdin = stdin
	go p.read(stdout)
	t.Cleanup(p.Stop)
	p.Endpoint = strings.TrimPrefix(p.Line("ready"), "ready ")
	return p
}

// read reads lines until the process ends.
func (p *Peer) read(stdout io.Reader) {
	defer close(p.lines)
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		p.lines <- lines.Text()
	}
}

// Address is the endpoint without its scheme.
func (p *Peer) Address() string { return strings.TrimPrefix(p.Endpoint, "tcp://") }

// Tell sends a line to peer.py.
func (p *Peer) Tell(format string, args ...any) {
	p.t.Helper()
	if _, err := fmt.Fprintf(p.stdin, format+"\n", args...); err != nil {
		p.t.Fatalf("tell libzmq: %v", err)
	}
}

// Name is the name of the peer's process.
func (p *Peer) Name() string { return p.process.Args[0] }

// Send has the peer send a message.
func (p *Peer) Send(parts ...[]byte) {
	p.t.Helper()
	p.Tell("send %s", inHex(parts))
}

// inHex writes the parts of a message as peer.py has them.
func inHex(parts [][]byte) string {
	words := make([]string, len(parts))
	for i, part := range parts {
		words[i] = "-"
		if len(part) > 0 {
			words[i] = hex.EncodeToString(part)
		}
	}
	return strings.Join(words, " ")
}

// Answer has a REP socket with the option show=yes answer requests until its end; nil: it
// doesn't answer. Nobody else can read its lines then.
func (p *Peer) Answer(answer func(request [][]byte) [][]byte) {
	p.answering.Go(func() {
		for line := range p.lines {
			request, err := fromHex(strings.Fields(strings.TrimPrefix(line, "got")))
			if err != nil {
				p.t.Errorf("expected libzmq to show a request, got %q: %v", line, err)
				continue
			}
			if parts := answer(request); parts != nil {
				// A peer that was killed needs no answer.
				_, _ = fmt.Fprintf(p.stdin, "send %s\n", inHex(parts))
			}
		}
	})
}

func fromHex(words []string) (parts [][]byte, err error) {
	for _, word := range words {
		part, err := hex.DecodeString(strings.TrimPrefix(word, "-"))
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// PID is that of the peer's process.
func (p *Peer) PID() int { return p.process.Process.Pid }

// Line waits for a line that begins with the word; there are no others before it.
func (p *Peer) Line(word string) string {
	p.t.Helper()
	select {
	case line, ok := <-p.lines:
		if !ok || !strings.HasPrefix(line, word) {
			p.t.Fatalf("expected libzmq to say %q, got %q", word, line)
		}
		return line
	case <-time.After(patience):
		p.t.Fatalf("expected libzmq to say %q, got nothing for %v", word, patience)
		return ""
	}
}

// Lines are the lines of the peer.
func (p *Peer) Lines() <-chan string { return p.lines }

// Got is the line of a message that was received.
func Got(parts ...[]byte) string {
	words := []string{"got"}
	for _, part := range parts {
		words = append(words, fmt.Sprintf("%d:%x", len(part), sha256.Sum256(part)))
	}
	return strings.Join(words, " ")
}

// Stop makes the peer send the messages that it holds, and end. It may be called again.
func (p *Peer) Stop() { p.end(func() error { return p.stdin.Close() }) }

// Kill kills the peer.
func (p *Peer) Kill() { p.end(p.process.Process.Kill) }

func (p *Peer) end(how func() error) {
	if p.process.ProcessState != nil {
		return
	}
	_ = how() // it is waited for
	kill := time.AfterFunc(patience, func() { _ = p.process.Process.Kill() })
	defer kill.Stop()
	for range p.lines { // until its end
	}
	p.answering.Wait()
	_ = p.process.Wait() // stderr has its error
}
