// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontroltest

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/callbraid/callbraid/extension/agentcontrolextension"
	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/agentcontrol/api"
	"github.com/callbraid/callbraid/internal/testkit/telemetrytest"
)

// extension is the real one, which is running.
type extension struct {
	component.Component
	agentcontrol.Directory
	t         testing.TB
	telemetry *componenttest.Telemetry
	client    *api.Client
	// shutdown may be called again.
	shutdown func()
}

// serve starts the extension, which ends with the test. It allows disruptive commands.
func serve(t testing.TB) *extension {
	t.Helper()
	core, said := observer.New(zapcore.InfoLevel)
	telemetry := componenttest.NewTelemetry()
	t.Cleanup(func() { assert.NoError(t, telemetry.Shutdown(context.Background())) })
	factory := agentcontrolextension.NewFactory()
	settings := extensiontest.NewNopSettings(factory.Type())
	settings.TelemetrySettings = telemetry.NewTelemetrySettings()
	settings.Logger = zap.New(core)
	config := factory.CreateDefaultConfig().(*agentcontrolextension.Config)
	config.NetAddr.Endpoint, config.AllowDisruptive = "localhost:0", true
	config.CommandTimeout, config.WriteTimeout = patience, 2*patience
	x, err := factory.Create(t.Context(), settings, config)
	require.NoError(t, err)
	require.NoError(t, x.Start(t.Context(), componenttest.NewNopHost()))
	address := said.FilterFieldKey("endpoint").All()[0].ContextMap()["endpoint"].(string)
	e := &extension{
		Component: x, Directory: x.(agentcontrol.Directory), t: t, telemetry: telemetry,
		client:   &api.Client{Endpoint: "http://" + address, HTTP: &http.Client{Timeout: 2 * patience, Transport: &http.Transport{DisableKeepAlives: true}}},
		shutdown: sync.OnceFunc(func() { assert.NoError(t, x.Shutdown(context.Background())) }),
	}
	t.Cleanup(e.shutdown)
	return e
}

// order sends an order, and returns its result: agentcontrol.Done, or the reason of a problem.
func (e *extension) order(id string, what Example) (outcome string) {
	arguments := map[string]any{}
	for name, value := range what.Arguments {
		arguments[name] = value
	}
	_, err := e.client.Order(context.Background(), id, api.Order{Command: what.Command, Arguments: arguments})
	if err == nil {
		return agentcontrol.Done
	}
	var problem *api.Problem
	if assert.ErrorAs(e.t, err, &problem, "%s: it is not answered", what.Command) {
		return problem.Reason
	}
	return ""
}

// ids are those of the agents that are listed.
func (e *extension) ids() (all []string) {
	e.t.Helper()
	list, err := e.client.Agents(context.Background())
	require.NoError(e.t, err)
	for _, a := range list.Agents {
		all = append(all, a.ID)
	}
	return all
}

// counted is how often which commands had which outcome.
func (e *extension) counted() map[string]int64 {
	e.t.Helper()
	return telemetrytest.Points(e.t, e.telemetry, "otelcol_extension_agent_control_commands")
}
