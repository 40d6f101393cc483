// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/callbraid/callbraid/cmd/internal/program"
	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
)

// agentFlags are the flags of each command that simulates a Bytefrog agent.
type agentFlags struct {
	endpoint       string
	protocol       uint8
	connections    int
	buffer         int
	connectTimeout time.Duration
	startTimeout   time.Duration
	hangTimeout    time.Duration
	verbose        bool
	tls            tlsFlags
}

// tlsFlags are the flags of encryption.
type tlsFlags struct {
	use        bool
	files      program.TLSFiles
	serverName string
	insecure   bool
}

func (f *agentFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.endpoint, "endpoint", "localhost:8765", "address of the receiver, host:port")
	flags.Uint8Var(&f.protocol, "protocol", bytefrog.MinVersion, "version of the protocol: 1 (Java-serialised configuration) or 2 (JSON)")
	flags.IntVar(&f.connections, "connections", 0, "data connections (0: the number in the configuration)")
	flags.IntVar(&f.buffer, "buffer", bytefrogagent.DefaultBufferSize, "size of a send buffer in bytes")
	flags.DurationVar(&f.connectTimeout, "connect-timeout", bytefrogagent.DefaultConnectTimeout, "how long to try to connect before the program runs untraced")
	flags.DurationVar(&f.startTimeout, "start-timeout", bytefrogagent.DefaultStartTimeout, "how long to wait for start before the program counts as hung (a real one waits forever)")
	flags.DurationVar(&f.hangTimeout, "hang-timeout", 10*time.Second, "how long a hung program hangs before agentsim reports it and exits")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "print each command of the receiver")
	flags.BoolVar(&f.tls.use, "tls", false, "connect with TLS")
	flags.StringVar(&f.tls.files.CA, "tls-ca", "", "file with the certificates (PEM) that the receiver's is checked against (default: the system's)")
	flags.StringVar(&f.tls.files.Cert, "tls-cert", "", "file with the agent's own certificate (PEM)")
	flags.StringVar(&f.tls.files.Key, "tls-key", "", "file with the key (PEM) of the agent's own certificate")
	flags.StringVar(&f.tls.serverName, "tls-server-name", "", "name that the receiver's certificate must have (default: the endpoint's host)")
	flags.BoolVar(&f.tls.insecure, "tls-insecure-skip-verify", false, "accept any certificate of the receiver: for tests only")
	c.MarkFlagsRequiredTogether("tls-cert", "tls-key")
}

// options checks the flags.
func (f *agentFlags) options() (bytefrogagent.Options, error) {
	switch {
	case f.protocol < 1:
		return bytefrogagent.Options{}, fmt.Errorf("--protocol: expected 1 or more, got %d", f.protocol)
	case f.connections < 0:
		return bytefrogagent.Options{}, fmt.Errorf("--connections: expected 0 or more, got %d", f.connections)
	case f.buffer < 1:
		return bytefrogagent.Options{}, fmt.Errorf("--buffer: expected at least 1 byte, got %d", f.buffer)
	}
	config, err := f.tls.config()
	if err != nil {
		return bytefrogagent.Options{}, err
	}
	o := bytefrogagent.Options{
		Endpoint:        f.endpoint,
		TLS:             config,
		Version:         f.protocol,
		DataConnections: f.connections,
		BufferSize:      f.buffer,
		ConnectTimeout:  f.connectTimeout,
		StartTimeout:    f.startTimeout,
		HangTimeout:     f.hangTimeout,
	}
	return o, nil
}

// config returns nil without --tls.
func (f tlsFlags) config() (*tls.Config, error) {
	if !f.use {
		if f.files != (program.TLSFiles{}) || f.serverName != "" || f.insecure {
			return nil, errors.New("--tls-…: expected --tls too")
		}
		return nil, nil
	}
	c, err := f.files.Config()
	if err != nil {
		return nil, err
	}
	c.ServerName, c.InsecureSkipVerify = f.serverName, f.insecure
	return c, nil
}
