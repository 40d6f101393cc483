// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/test/kit"
)

// Each receiver that is a client reports in the health check, and by a gauge, whether it reaches
// its servers.
func TestTheHealthOfServersIsTheHealthOfTheCollector(t *testing.T) {
	t.Parallel()
	s, health, absent := newGreysServer(t), testkit.Address(t), testkit.Address(t)
	c := kit.StartGated(t, "extension.healthcheck.useComponentStatus", fmt.Sprintf(`
extensions:
  health_check/status:
    http: {endpoint: %q, status: {enabled: true, path: /status}}
    component_health: {include_permanent_errors: true, include_recoverable_errors: true, recovery_duration: 0s}
receivers:
  greys:
    protocol: console
    servers: [{endpoint: %q}]
    reconnect: {initial_interval: 10ms, max_interval: 100ms}
    monitors: [{class: "com.example.*", method: "*"}]
  rbkit: {servers: [{publish: %q}]}
  lttng_live: {endpoint: %q}
  arthas: {servers: [{endpoint: "http://%s"}], jvm: {interval: 1s}}
exporters:
  nop:
service:
  extensions: [health_check, pprof, health_check/status]
  pipelines:
    logs: {receivers: [greys, rbkit, lttng_live, arthas], exporters: [nop]}
    metrics: {receivers: [greys], exporters: [nop]}
    metrics/others: {receivers: [rbkit, lttng_live, arthas], exporters: [nop]}
`, health, s.endpoint, absent, absent, absent))
	status := func(pipeline string) string {
		response, err := http.Get("http://" + health + "/status?verbose&pipeline=" + pipeline)
		if err != nil {
			return err.Error()
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return fmt.Sprint(response.StatusCode, " ", string(body))
	}
	await := func(what, pipeline, text string) {
		t.Helper()
		testkit.Eventually(t, what, func() (bool, string) {
			got := status(pipeline)
			return strings.Contains(got, text), got
		})
	}
	gauge := func(receiver, server string) float64 {
		return c.Metric(t, "otelcol_receiver_"+receiver+"_server_up", `server="`+server+`"`)
	}

	away := `"status":"StatusRecoverableError","error":"1 of 1 failed: ` + s.endpoint
	await("the Greys server that is away", "metrics", away)
	for _, pipeline := range []string{"logs", "metrics/others"} {
		for receiver, server := range map[string]string{"rbkit": absent, "lttng_live": absent, "arthas": "http://" + absent} {
			await(receiver+" in pipeline "+pipeline, pipeline, `"receiver:`+receiver+`":{"healthy":false,"status":"StatusRecoverableError","error":"1 of 1 failed: `+server)
			assert.Zero(t, gauge(receiver, server))
		}
	}
	assert.Zero(t, gauge("greys", s.endpoint))

	played := s.play(t)
	await("the server", "metrics", `"receiver:greys":{"healthy":true,"status":"StatusOK"`)
	assert.True(t, strings.HasPrefix(status("metrics"), "200 "))
	assert.EqualValues(t, 1, gauge("greys", s.endpoint))

	played.stop()
	await("its loss", "metrics", away)
	testkit.Eventually(t, "the gauge", func() (bool, string) {
		up := gauge("greys", s.endpoint)
		return up == 0, fmt.Sprint(up)
	})
	c.Stop(t)
}
