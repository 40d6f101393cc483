// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"context"
	"net"

	"github.com/callbraid/callbraid/internal/rbkit/zmtp"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/counters"
)

type dialFunc func(ctx context.Context, address string) (net.Conn, error)

// environment is shared by the connections to all servers.
type environment struct {
	*outputs
	counters *counters.Counters
	dial     dialFunc
	metrics  *metricsLoop
}

// zmtpOptions returns the options of connections to a server.
func (e *environment) zmtpOptions(server *ServerConfig) zmtp.Options {
	o := zmtp.Options{
		Timeout: e.config.Timeout, Heartbeat: e.config.Heartbeat,
		Limits: zmtp.Limits{Message: e.config.Limits.MaxMessageBytes},
	}
	if server.Username != "" {
		o.Security = zmtp.Plain{Username: server.Username, Password: string(server.Password)}
	}
	return o
}
