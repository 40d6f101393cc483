// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/callbraid/callbraid/internal/testkit"
)

// callsOfLoad is how many calls `agentsim bytefrog load --events 1000` makes by its default
// seed; 60 of them are not over at the end.
const callsOfLoad = 530

// endpoints are addresses that are free on this machine, for those of the shipped configuration.
type endpoints struct{ health, bytefrog, prometheus, flameGraph, own string }

func freeEndpoints(t *testing.T) endpoints {
	t.Helper()
	return endpoints{
		health: testkit.Address(t), bytefrog: testkit.Address(t), prometheus: testkit.Address(t),
		flameGraph: testkit.Address(t), own: testkit.Address(t),
	}
}

// readers is where a collector shows metrics of its own.
func (e endpoints) readers() string {
	host, port, _ := strings.Cut(e.own, ":")
	return fmt.Sprintf("[{pull: {exporter: {prometheus: {host: %s, port: %s}}}}]", host, port)
}

// configuration is added to the shipped one.
func (e endpoints) configuration() string {
	return fmt.Sprintf(`
extensions: {health_check: {endpoint: %s}}
receivers: {bytefrog: {endpoint: %s}}
exporters: {prometheus: {endpoint: %s}, flame_graph: {endpoint: %s}}
service: {telemetry: {metrics: {readers: %s}}}
`, e.health, e.bytefrog, e.prometheus, e.flameGraph, e.readers())
}

const (
	configuration = "/etc/otelcol-callbraid/config.yaml"
	options       = "/etc/otelcol-callbraid/otelcol-callbraid.conf"
	addresses     = "/srv/addresses.yaml"
)

// configure has the service of a system listen at free addresses, by a second file of
// configuration that its options name.
func (s *system) configure(t *testing.T) endpoints {
	t.Helper()
	e := freeEndpoints(t)
	s.write(t, addresses, e.configuration())
	const shipped = "--config=" + configuration
	named := strings.ReplaceAll(s.read(t, options), shipped+`"`, shipped+" --config="+addresses+`"`)
	s.write(t, options, named)
	return e
}

// awaitHealthy waits until a collector reports that it is healthy.
func (e endpoints) awaitHealthy(t *testing.T, v *service) {
	t.Helper()
	testkit.Eventually(t, "the collector is healthy", func() (bool, string) {
		response, err := http.Get("http://" + e.health)
		if err != nil {
			return false, err.Error() + "\n" + v.said(t)
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK, response.Status
	})
}
