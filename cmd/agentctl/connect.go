// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/callbraid/callbraid/cmd/internal/program"
	"github.com/callbraid/callbraid/internal/agentcontrol/api"
)

// connectFlags have the address of the collector and the credentials of the user.
type connectFlags struct {
	endpoint, tokenFile string
	timeout             time.Duration
	tls                 program.TLSFiles
}

func (f *connectFlags) register(c *cobra.Command) {
	flags := c.PersistentFlags()
	flags.SortFlags = false
	flags.StringVar(&f.endpoint, "endpoint", fromEnvironment(endpointVariable, defaultEndpoint), "address of agent_control (also: "+endpointVariable+")")
	// The address may have a password.
	flags.Lookup("endpoint").DefValue = redacted(f.endpoint)
	flags.DurationVar(&f.timeout, "timeout", time.Minute, "how long to wait for an answer")
	flags.StringVar(&f.tokenFile, "token-file", "", "file with a bearer token (or "+tokenVariable+", the token)")
	flags.StringVar(&f.tls.CA, "tls-ca", "", "file with the certificates (PEM) that the collector's is checked against (default: the system's)")
	flags.StringVar(&f.tls.Cert, "tls-cert", "", "file with a certificate (PEM) of your own")
	flags.StringVar(&f.tls.Key, "tls-key", "", "file with the key (PEM) of your certificate")
	c.MarkFlagsRequiredTogether("tls-cert", "tls-key")
}

// client returns a client of the API.
func (f *connectFlags) client() (*api.Client, error) {
	address, err := url.Parse(f.endpoint)
	if err != nil || address.Scheme != "http" && address.Scheme != "https" || address.Host == "" {
		return nil, fmt.Errorf("--endpoint: expected http://host:port or https://host:port, got %q", redacted(f.endpoint))
	}
	if f.timeout <= 0 {
		return nil, fmt.Errorf("--timeout: expected more than 0, got %v", f.timeout)
	}
	token, err := f.token()
	if err != nil {
		return nil, err
	}
	secure, err := f.tls.Config()
	if err != nil {
		return nil, err
	}
	return &api.Client{Endpoint: f.endpoint, Token: token, HTTP: &http.Client{
		Timeout: f.timeout, Transport: &http.Transport{TLSClientConfig: secure, Proxy: http.ProxyFromEnvironment},
		// A redirection would send commands and tokens to another server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// redacted returns an address without its password.
func redacted(endpoint string) string {
	if address, err := url.Parse(endpoint); err == nil {
		return address.Redacted()
	}
	return "an address that can't be read"
}

// warning returns a warning about credentials without TLS; empty: none.
func (f *connectFlags) warning() string {
	address, err := url.Parse(f.endpoint)
	if err != nil || address.Scheme != "http" || f.tokenFile == "" && os.Getenv(tokenVariable) == "" && address.User == nil {
		return ""
	}
	if ip := net.ParseIP(address.Hostname()); ip != nil && ip.IsLoopback() || address.Hostname() == "localhost" {
		return ""
	}
	return "the credentials go over the network without TLS: use https"
}

func (f *connectFlags) token() (string, error) {
	if f.tokenFile == "" {
		return os.Getenv(tokenVariable), nil
	}
	b, err := os.ReadFile(f.tokenFile)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}
