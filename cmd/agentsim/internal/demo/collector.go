// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Waits for the collector.
const (
	startTimeout = 60 * time.Second
	endTimeout   = 30 * time.Second
	pollInterval = 100 * time.Millisecond
)

// How much of the collector's log an error shows: lines, and bytes of each.
const (
	mostLines   = 5
	longestLine = 500
)

// collector is the collector as a child process. Its output goes to a file.
type collector struct {
	process *exec.Cmd
	log     string
	ended   chan struct{} // closed when the process is gone
	err     error         // of its end; to be read after ended
}

// checkFree fails if a program listens on one of the addresses already: the demo would use it
// instead of its own collector.
func checkFree(addresses ...string) error {
	for _, address := range addresses {
		listener, err := net.Listen("tcp", address)
		if unknown := (*net.DNSError)(nil); errors.As(err, &unknown) {
			return fmt.Errorf("find the address %s: %w", address, err)
		}
		if err != nil {
			return fmt.Errorf("%s is in use: end the program that listens there (another collector?), or use a configuration with other ports: %w", address, err)
		}
		listener.Close() // no connection was accepted
	}
	return nil
}

// startCollector starts it and waits until its health check answers.
func startCollector(ctx context.Context, o Options) (*collector, error) {
	c := &collector{
		process: exec.Command(o.Collector, "--config", o.Config, "--set=receivers.bytefrog.service_name="+o.Service),
		log:     o.logFile(),
		ended:   make(chan struct{}),
	}
	log, err := os.Create(c.log)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own
	c.process.Stdout, c.process.Stderr = log, log
	c.process.Env = append(os.Environ(), dataVariable+"="+o.Data)
	ownGroup(c.process)
	if err := c.process.Start(); err != nil {
		return nil, fmt.Errorf("start the collector: %w", err)
	}
	go func() {
		c.err = c.process.Wait()
		close(c.ended)
	}()
	if err := c.awaitHealth(ctx, o.Health); err != nil {
		c.kill()
		return nil, err
	}
	return c, nil
}

func (c *collector) awaitHealth(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		if healthy(ctx, url) {
			return nil
		}
		select {
		case <-c.ended:
			return c.failure("the collector did not start")
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return c.failure(fmt.Sprintf("%s did not answer within %v", url, startTimeout))
			}
			return ctx.Err()
		case <-time.After(pollInterval):
		}
	}
}

func healthy(ctx context.Context, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	response.Body.Close() // its content is not needed
	return response.StatusCode == http.StatusOK
}

// failure returns an error with the last lines of the collector's log, except progress.
func (c *collector) failure(what string) error {
	text, err := os.ReadFile(c.log)
	if err != nil {
		return fmt.Errorf("%s, and its log cannot be read: %w", what, err)
	}
	if bytes.Contains(text, []byte("address already in use")) {
		what += ": a port is in use by another process"
	}
	return fmt.Errorf("%s; its log is %s%s", what, c.log, lastLines(string(text)))
}

// lastLines formats the last lines of a program's output for an error, so few that the rest of the
// error stays visible.
func lastLines(text string) string {
	var b strings.Builder
	for _, line := range complaints(text) {
		fmt.Fprintf(&b, "\n    %s", line)
	}
	return b.String()
}

// complaints returns the last lines of a collector's log that are no progress, cut to a
// length that can be read.
func complaints(log string) []string {
	var found []string
	for line := range strings.Lines(log) {
		line = strings.TrimSpace(line)
		if line == "" || strings.Contains(line, "\tinfo\t") || strings.Contains(line, "\tdebug\t") {
			continue
		}
		if len(line) > longestLine {
			line = line[:longestLine] + "…"
		}
		found = append(found, line)
	}
	return found[max(0, len(found)-mostLines):]
}

// stop ends the collector as an interrupt does and waits until it is gone.
func (c *collector) stop() error {
	select {
	case <-c.ended:
		return c.failure("the collector ended by itself")
	default:
	}
	if err := c.process.Process.Signal(os.Interrupt); err != nil {
		c.kill()
		return fmt.Errorf("end the collector: %w", err)
	}
	select {
	case <-c.ended:
	case <-time.After(endTimeout):
		c.kill()
		return c.failure(fmt.Sprintf("the collector did not end within %v of an interrupt", endTimeout))
	}
	if c.err != nil {
		return c.failure("the collector ended with an error: " + c.err.Error())
	}
	return nil
}

// kill ends a collector that does not end by itself.
func (c *collector) kill() {
	c.process.Process.Kill() // fails only if it is gone already
	<-c.ended
}
