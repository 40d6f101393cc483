// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/hqtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const shop = "../../testdata/bytefrog/shop.zip"

func configuration(connections int32) bytefrog.AgentConfiguration {
	return bytefrog.AgentConfiguration{
		RunID:              1,
		HeartbeatInterval:  50 * time.Millisecond,
		BufferMemoryBudget: 1 << 20,
		QueueRetryCount:    10,
		DataConnections:    connections,
	}
}

// execute runs the command line against an HQ that runs the script.
func execute(t *testing.T, script func(hq *hqtest.HQ), args ...string) (output string, err error) {
	t.Helper()
	hq := hqtest.New(t)
	root := rootCommand()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetArgs(append(args, "--endpoint", hq.Endpoint(), "--hang-timeout", "10ms"))
	done := make(chan error, 1)
	go func() { done <- root.Execute() }()
	script(hq)
	err = <-done
	return out.String(), err
}

func TestACompleteReplayExitsWithZero(t *testing.T) {
	out, err := execute(t, func(hq *hqtest.HQ) { hq.Begin(configuration(3)) }, "bytefrog", "replay", shop)
	require.NoError(t, err)
	assert.Contains(t, out, "the program ended and everything was sent")
	assert.Contains(t, out, "sent 9,628 events")
}

func TestFlagsReachTheAgent(t *testing.T) {
	out, err := execute(t, func(hq *hqtest.HQ) {
		hello := hq.Accept()
		assert.EqualValues(t, 2, hello.Version)
		hq.Configure(hello.Version, configuration(1))
		hq.Order(bytefrog.TypeStart)
		hq.AcceptData(5)
	}, "bytefrog", "replay", shop, "--protocol", "2", "--connections", "5", "--buffer", "1000", "--shuffle", "1", "--repeat", "2", "--speed", "50x", "-v")
	require.NoError(t, err)
	assert.Contains(t, out, "sent 19,256 events")
}

func TestLoadEndsInOrder(t *testing.T) {
	out, err := execute(t, func(hq *hqtest.HQ) { hq.Begin(configuration(1)) },
		"bytefrog", "load", "--events", "5000", "--exceptions", "0.1", "--markers", "0.1", "--suspends", "2", "--threads", "3")
	require.NoError(t, err)
	assert.Contains(t, out, "2 data breaks")
}

func TestAHungProgramHasItsOwnExitCode(t *testing.T) {
	out, err := execute(t, func(hq *hqtest.HQ) {
		hq.Begin(configuration(1))
		hq.WaitBytes(1)
		hq.CloseControl()
		hq.CloseData()
	}, "bytefrog", "load")
	assert.Equal(t, exitCode(exitHung), err)
	assert.Contains(t, out, "the traced program hangs: ")
}

func TestAnEndedProgramHasItsOwnExitCode(t *testing.T) {
	out, err := execute(t, func(hq *hqtest.HQ) {
		hq.Accept()
		hq.Send(bytefrog.ErrorMessage{Text: "not you"})
	}, "bytefrog", "load")
	assert.Equal(t, exitCode(exitDied), err)
	assert.Contains(t, out, "was ended before its main: the HQ refused the agent: not you")
}

func TestARefusedAgentHasItsOwnExitCode(t *testing.T) {
	out, err := execute(t, func(hq *hqtest.HQ) {
		c := configuration(0)
		c.Exclusions, c.Inclusions = []string{""}, nil
		hq.Begin(c)
		hq.Wait("a class report", func(control []bytefrog.Message, _ [][]byte) bool {
			return slices.ContainsFunc(control, func(m bytefrog.Message) bool { _, ok := m.(bytefrog.ClassReport); return ok })
		})
		hq.Send(bytefrog.ErrorMessage{Text: "not you"})
	}, "bytefrog", "load")
	assert.Equal(t, exitCode(exitRefused), err)
	assert.Contains(t, out, "ran untraced to its end: the HQ sent error: not you")
}

func TestAProgramWithoutAnHQRunsUntracedAndExitsWithZero(t *testing.T) {
	root := rootCommand()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetArgs([]string{"bytefrog", "load", "--endpoint", "localhost:1", "--connect-timeout", "50ms"})
	assert.NoError(t, root.Execute())
	assert.Contains(t, out.String(), "the program ran untraced to its end: no HQ answered within 50ms")
}

func TestWrongFlagsAreNamed(t *testing.T) {
	for want, args := range map[string][]string{
		"--speed: expected":          {"replay", shop, "--speed", "fast"},
		"--repeat: expected":         {"replay", shop, "--repeat", "0"},
		"--protocol: expected":       {"replay", shop, "--protocol", "0"},
		"--buffer: expected":         {"replay", shop, "--buffer", "0"},
		"--connections: expected":    {"replay", shop, "--connections", "-1"},
		"open capture":               {"replay", "nothing.zip"},
		"--agents: expected":         {"load", "--agents", "0"},
		"--threads: expected":        {"load", "--threads", "0"},
		"--depth: expected":          {"load", "--depth", "0"},
		"--functions: expected":      {"load", "--functions", "0"},
		"--loss: expected":           {"load", "--loss", "2"},
		"expected --tls too":         {"load", "--tls-insecure-skip-verify"},
		"--tls-ca":                   {"load", "--tls", "--tls-ca", "nothing.pem"},
		"[tls-cert tls-key]":         {"load", "--tls", "--tls-cert", "nothing.pem"},
		"--tls-cert, --tls-key: ope": {"load", "--tls", "--tls-cert", "nothing.pem", "--tls-key", "nothing.pem"},
	} {
		root := rootCommand()
		root.SetArgs(append([]string{"bytefrog"}, args...))
		assert.ErrorContains(t, root.Execute(), want)
	}
}

func TestSpeeds(t *testing.T) {
	for text, want := range map[string]float64{"full": 0, "real": 1, "2x": 2, "0.5": 0.5} {
		got, err := parseSpeed(text)
		require.NoError(t, err)
		assert.Equal(t, strconv.FormatFloat(want, 'g', -1, 64), strconv.FormatFloat(got, 'g', -1, 64))
	}
	for _, text := range []string{"", "x", "-1x", "0", "nan", "inf"} {
		_, err := parseSpeed(text)
		assert.Error(t, err, text)
	}
}
