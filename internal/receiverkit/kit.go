// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package receiverkit

import (
	"cmp"
	"os"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/ownmetrics"
	"github.com/callbraid/callbraid/internal/receiverkit/handover"
	"github.com/callbraid/callbraid/internal/receiverkit/serverhealth"
)

// Kit has the parts of a receiver that exist from its creation on. Its exported fields may be
// changed before Start, as tests do.
type Kit struct {
	// ID is the component ID, such as rbkit/second.
	ID string
	// Settings are the collector's, for generated builders.
	Settings receiver.Settings
	Logger   *zap.Logger
	// Telemetry are the settings of the receiver's telemetry builder: each point has the ID.
	Telemetry component.TelemetrySettings
	// Health is the component's status, of all peers.
	Health *serverhealth.Health
	// Now returns the time.
	Now func() time.Time
	// Host is the name of this machine; empty: it has none.
	Host string
	// PeerTime is the part of shutdown_timeout in which peers are disconnected. New sets all
	// of it.
	PeerTime time.Duration
	// Overtime is the time that a shutdown may take beyond shutdown_timeout for work that doesn't
	// depend on the pipeline. New sets two seconds.
	Overtime time.Duration
	// StillOpen describes what a shutdown waits for, in the error of a late one. Nil: the error
	// names only pipelines and peers.
	StillOpen func() string

	config   *Config
	format   string
	scope    string
	observer *receiverhelper.ObsReport
	// warnUnpaired logs once that no stack_pairing follows.
	warnUnpaired func()
}

// Names are the names that data of a receiver carries.
type Names struct {
	// Format is the format of received data in the collector's own metrics.
	Format string
	// Scope is the name of the instrumentation scope.
	Scope string
	// Transport is the way of the data to the receiver, in the collector's own metrics. Empty: tcp.
	Transport string
}

const defaultOvertime = 2 * time.Second

// New returns the kit of a receiver.
func New(settings receiver.Settings, config *Config, names Names) (*Kit, error) {
	observer, err := handover.NewObserver(settings, cmp.Or(names.Transport, "tcp"))
	if err != nil {
		return nil, err
	}
	// A machine without a name has no attribute host.name.
	host, _ := os.Hostname()
	return &Kit{
		ID:        settings.ID.String(),
		Settings:  settings,
		Logger:    settings.Logger,
		Telemetry: ownmetrics.Of(component.KindReceiver, settings.ID, settings.TelemetrySettings),
		Health:    serverhealth.New(),
		Now:       time.Now,
		Host:      host,
		PeerTime:  config.ShutdownTimeout,
		Overtime:  defaultOvertime,
		config:    config,
		format:    names.Format,
		scope:     names.Scope,
		observer:  observer,

		warnUnpaired: handover.WarnUnpaired(settings.Logger),
	}, nil
}

// SetScope sets name and version of an instrumentation scope.
func (k *Kit) SetScope(scope pcommon.InstrumentationScope) {
	scope.SetName(k.scope)
	scope.SetVersion(k.Settings.BuildInfo.Version)
}
