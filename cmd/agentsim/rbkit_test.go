// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/zmtp"
	"github.com/callbraid/callbraid/internal/testkit"
)

const rbkitPatience = time.Minute

// subscribed runs a command of agentsim rbkit with a subscriber, and returns the received messages
// and the output.
func subscribed(t *testing.T, args ...string) (messages [][]byte, output string) {
	t.Helper()
	publish := testkit.Address(t)
	ctx, cancel := context.WithTimeout(context.Background(), rbkitPatience)
	defer cancel()
	var receiving sync.WaitGroup
	receiving.Go(func() {
		for ctx.Err() == nil && len(messages) == 0 {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", publish)
			if err != nil {
				runtime.Gosched() // it doesn't listen yet
				continue
			}
			s, err := zmtp.Subscribe(ctx, conn, zmtp.Options{}, []byte{})
			if err != nil {
				continue
			}
			_ = s.Receive(ctx, func(m zmtp.Message) error {
				messages = append(messages, bytes.Clone(m[0]))
				return nil
			})
			_ = s.Close()
		}
	})
	root := rootCommand()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetArgs(append(append([]string{"rbkit"}, args...), "--publish", publish, "--request", testkit.Address(t), "--linger", "1ms"))
	err := root.Execute()
	// Its connection ended with it, behind everything that was published.
	receiving.Wait()
	require.NoError(t, err)
	return messages, out.String()
}

// readMessage reads a whole message, and returns the number of its events.
func readMessage(message []byte) (h rbkit.Header, events int, err error) {
	dialect, err := rbkit.DialectOf(message)
	if err != nil {
		return h, 0, err
	}
	var r rbkit.Reader
	if err := r.Open(dialect, message); err != nil {
		return h, 0, err
	}
	for r.Next() {
		if r.Event().Kind != rbkit.DumpedObject {
			events++
		}
	}
	return r.Header(), events, r.Err()
}

func TestARbkitCaptureIsPublishedUnchanged(t *testing.T) {
	messages, out := subscribed(t, "replay", "../../testdata/rbkit/released-30s.zip")
	require.Len(t, messages, 132)
	events := 0
	for _, m := range messages {
		_, n, err := readMessage(m)
		require.NoError(t, err)
		events += n
	}
	assert.Equal(t, 85542, events)
	assert.Contains(t, out, "published 132 messages")
	assert.Contains(t, out, "in the released dialect")
}

func TestRbkitLoadFollowsItsFlags(t *testing.T) {
	for flag, dialect := range map[string]rbkit.Dialect{"--documented=false": rbkit.Released, "--documented": rbkit.Documented} {
		messages, _ := subscribed(t, "load", flag, "--messages", "100", "--rate", "0", "--events", "30", "--seed", "7")
		require.Len(t, messages, 100)
		for i, m := range messages {
			got, err := rbkit.DialectOf(m)
			require.NoError(t, err)
			assert.Equal(t, dialect, got)
			h, n, err := readMessage(m)
			require.NoError(t, err)
			assert.GreaterOrEqual(t, n, 30)
			assert.EqualValues(t, i, h.Counter)
		}
	}
}

func TestRbkitGarbageIsSentBetweenMessages(t *testing.T) {
	messages, _ := subscribed(t, "replay", "--garbage", "12", "../../testdata/rbkit/documented-30s.zip")
	require.Len(t, messages, 26)
	bad := 0
	for _, m := range messages {
		if _, _, err := readMessage(m); err != nil {
			bad++
		}
	}
	assert.Equal(t, 2, bad)
}

func TestWrongFlagsOfRbkitAreNamed(t *testing.T) {
	for text, args := range map[string][]string{
		"--events: expected at least 1, got 0":      {"load", "--events", "0"},
		"--classes: expected at least 1":            {"load", "--classes", "0"},
		"--rate, --duration: expected at least 0":   {"load", "--rate", "-1"},
		"--garbage: expected at least 0":            {"load", "--garbage", "-1"},
		"--linger: expected at least 0":             {"load", "--linger", "-1s"},
		"--reply-delay: expected at least 0":        {"load", "--reply-delay", "-1s"},
		"--repeat: expected at least 1":             {"replay", "--repeat", "0", "x.zip"},
		"--speed: expected full, real, or a factor": {"replay", "--speed", "x", "x.zip"},
		"open capture": {"replay", "x.zip"},
	} {
		root := rootCommand()
		root.SetOut(&bytes.Buffer{})
		root.SetArgs(append([]string{"rbkit"}, args...))
		assert.ErrorContains(t, root.Execute(), text)
	}
}

func TestASlowAnswerEndsWithTheServer(t *testing.T) {
	serving, end := context.WithCancel(context.Background())
	r := &rbkitRun{flags: &rbkitFlags{replyDelay: time.Hour}, serving: serving, dumps: make(chan struct{}, 1)}
	answered := make(chan struct{})
	go func() {
		r.commanded(rbkit.ObjectSpaceSnapshot)
		close(answered)
	}()
	<-r.dumps // it delays the answer now
	end()
	select {
	case <-answered:
	case <-time.After(rbkitPatience):
		t.Fatal("it goes on")
	}
}
