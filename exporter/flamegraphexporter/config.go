// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package flamegraphexporter

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/confmap"

	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/componentkit/confignames"
	"github.com/callbraid/callbraid/internal/componentkit/setting"
)

// Config is the configuration of the exporter.
type Config struct {
	// ServerConfig is where the pages are served.
	confighttp.ServerConfig `mapstructure:",squash"`
	// AllowedHosts are the names that browsers may call the server by, beside localhost
	// and addresses. Empty: no other name where it listens on a loopback address, else any.
	AllowedHosts []string `mapstructure:"allowed_hosts"`

	// MaxConnections is the largest number of connections of clients; one address has at most half
	// of them. If there are more, an idle one is closed.
	MaxConnections int `mapstructure:"max_connections"`

	// FollowLinks places a span without parent below the span of its link, if the link marks a trace
	// that was cut there.
	FollowLinks bool `mapstructure:"follow_links"`
	// CountSpans counts spans in the call trees. Otherwise they are only kept for traces, because
	// profiles of call paths have their calls.
	CountSpans bool `mapstructure:"count_spans"`
	// VersionAttribute is the resource attribute whose values have trees of their own; empty: none.
	VersionAttribute string `mapstructure:"version_attribute"`
	// PendingTimeout is the time for which spans wait for their parent, and parents are remembered
	// for spans that arrive later.
	PendingTimeout time.Duration `mapstructure:"pending_timeout"`
	// MaxPending is how many spans are waited for or remembered, all services together.
	MaxPending int `mapstructure:"max_pending"`
	// MaxNodes is how many call paths there are, all services together. The smallest are
	// folded where there are more.
	MaxNodes int `mapstructure:"max_nodes"`
	// MaxServices is how many services have trees of their own.
	MaxServices int `mapstructure:"max_services"`
	// MaxNameBytes bounds the name of a function, and MaxNamesMiB all names.
	MaxNameBytes int `mapstructure:"max_name_bytes"`
	MaxNamesMiB  int `mapstructure:"max_names_mib"`
	// MaxWindows is the largest number of open windows.
	MaxWindows int `mapstructure:"max_windows"`
	// MaxKeptWindows is the number of collected windows that are kept for the pages, and
	// MaxKeptWindowNodes the number of their call paths together. The last one is kept at any
	// size.
	MaxKeptWindows     int `mapstructure:"max_kept_windows"`
	MaxKeptWindowNodes int `mapstructure:"max_kept_window_nodes"`
	// TraceFiles is the path of an exporter perfetto. The pages offer its files for download. Empty: none.
	TraceFiles string `mapstructure:"trace_files"`
	// Traces configures the kept spans.
	Traces TracesConfig `mapstructure:"traces"`

	// Storage is the extension that stores call trees and their windows for the next collector. If it is nil, they are in memory only.
	Storage *component.ID `mapstructure:"storage"`
	// History bounds the stored windows.
	History HistoryConfig `mapstructure:"history"`
}

// HistoryConfig bounds the windows in the storage.
type HistoryConfig struct {
	// Hours and Days are the numbers of hours and days that are kept, beside the current ones.
	Hours int `mapstructure:"hours"`
	Days  int `mapstructure:"days"`
	// MaxMiB bounds the stored data. The oldest windows of the service with most data are dropped first.
	MaxMiB int `mapstructure:"max_mib"`
	// SaveInterval is the time between two saves. A collector that is killed loses the calls since the last one.
	SaveInterval time.Duration `mapstructure:"save_interval"`
}

// TracesConfig configures the spans that are kept as they arrived, for the time view of a trace.
type TracesConfig struct {
	// MaxSpans is the number of kept spans, the latest ones; 0: none.
	MaxSpans int `mapstructure:"max_spans"`
}

const (
	settingMaxConnections = "max_connections"

	defaultEndpoint = "localhost:4040"
	// defaultReadTimeout is the time in which a request must arrive, with its form.
	defaultReadTimeout = 30 * time.Second

	mib = 1 << 20
	// maxNamesMiB is a tebibyte, or the largest int.
	maxNamesMiB = min(1<<20, math.MaxInt/mib)
	// maxHistoryMiB is a tebibyte, too.
	maxHistoryMiB = 1 << 20
)

func createDefaultConfig() component.Config {
	server := confighttp.NewDefaultServerConfig()
	server.NetAddr.Endpoint = defaultEndpoint
	server.ReadTimeout = defaultReadTimeout
	server.ReadHeaderTimeout = defaultReadTimeout
	return &Config{
		ServerConfig:       server,
		MaxConnections:     1000,
		FollowLinks:        true,
		CountSpans:         true,
		PendingTimeout:     time.Hour,
		MaxPending:         500_000,
		MaxNodes:           1_000_000,
		MaxServices:        1000,
		MaxNameBytes:       1024,
		MaxNamesMiB:        64,
		MaxWindows:         10,
		MaxKeptWindows:     8,
		MaxKeptWindowNodes: 500_000,
		Traces:             TracesConfig{MaxSpans: 100_000},
		History:            HistoryConfig{Hours: 48, Days: 31, MaxMiB: 256, SaveInterval: time.Minute},
	}
}

var (
	_ confmap.Unmarshaler = (*Config)(nil)
	_ confmap.Validator   = (*Config)(nil)
)

// Unmarshal reports the right name of a misspelt setting.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return confignames.Unmarshal(conf, c) }

// Validate returns all invalid settings, each with its field and its remedy.
func (c *Config) Validate() error {
	all := errors.Join(
		setting.Between(settingMaxConnections, c.MaxConnections, 1, 100_000),
		setting.Within("pending_timeout", c.PendingTimeout, time.Second, 1000*time.Hour),
		setting.Between("max_pending", c.MaxPending, calltree.LeastPending, 100_000_000),
		setting.Between("max_nodes", c.MaxNodes, calltree.LeastNodes, 100_000_000),
		setting.Between("max_services", c.MaxServices, 1, 100_000),
		setting.Between("max_name_bytes", c.MaxNameBytes, 16, 1<<20),
		setting.Between("max_names_mib", c.MaxNamesMiB, 1, maxNamesMiB),
		setting.Between("max_windows", c.MaxWindows, 1, 1000),
		setting.Between("max_kept_windows", c.MaxKeptWindows, 1, 1000),
		setting.Between("max_kept_window_nodes", c.MaxKeptWindowNodes, 1, 100_000_000),
		setting.Between("traces.max_spans", c.Traces.MaxSpans, 0, 10_000_000),
		setting.Between("history.hours", c.History.Hours, 1, 24*366),
		setting.Between("history.days", c.History.Days, 0, 10*366),
		setting.Between("history.max_mib", c.History.MaxMiB, 1, maxHistoryMiB),
		setting.Within("history.save_interval", c.History.SaveInterval, time.Second, time.Hour),
	)
	if c.NetAddr.Endpoint == "" {
		all = errors.Join(all, fmt.Errorf("endpoint is empty: set it to host:port, such as %s", defaultEndpoint))
	}
	for _, name := range c.AllowedHosts {
		if name == "" || strings.ContainsAny(name, ":/* ") {
			all = errors.Join(all, fmt.Errorf("allowed_hosts has %q: set it to names of hosts, without scheme and port", name))
		}
	}
	if all == nil && c.MaxNodes < calltree.NodesOfService*c.MaxServices {
		all = fmt.Errorf("max_nodes is %d: set it to at least %d times max_services, %d", c.MaxNodes, calltree.NodesOfService, c.MaxServices)
	}
	if all == nil && c.MaxNamesMiB*mib < calltree.NamesOfService*c.MaxServices {
		all = fmt.Errorf("max_names_mib is %d: set it to at least %d bytes times max_services, %d", c.MaxNamesMiB, calltree.NamesOfService, c.MaxServices)
	}
	if all == nil && c.MaxNamesMiB*mib < calltree.LeastNames*c.MaxNameBytes {
		all = fmt.Errorf("max_names_mib is %d: set it to at least %d times max_name_bytes, %d", c.MaxNamesMiB, calltree.LeastNames, c.MaxNameBytes)
	}
	return all
}

// settings are those of the store.
func (c *Config) settings() calltree.Settings {
	return calltree.Settings{
		PendingTimeout: c.PendingTimeout,
		MaxServices:    c.MaxServices,
		MaxNodes:       c.MaxNodes,
		MaxPending:     c.MaxPending,
		MaxNameBytes:   c.MaxNameBytes,
		MaxNamesBytes:  c.MaxNamesMiB * mib,
		KeepOnly:       !c.CountSpans,
		MaxKeptSpans:   c.Traces.MaxSpans,
		MaxWindows:     c.MaxWindows,
		Periods:        c.Storage != nil,
	}
}
