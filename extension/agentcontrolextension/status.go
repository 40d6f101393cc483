// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontrolextension

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/extension/extensioncapabilities"

	"github.com/callbraid/callbraid/internal/componentkit/losses"
)

// whole is the state of the whole collector, for the first page: its pipelines and the addresses of its other pages by its
// configuration, and the components that have reported a fault. Losses and the memory budget are in the collector's own metrics,
// which it reads for each page.
type whole struct {
	mu     sync.Mutex
	config wholeConfig
	// The last status of each component that is not well.
	faults map[string]fault

	// reading is held while the collector's own metrics are read: many pages that are kept current read them once.
	reading sync.Mutex
	read    ownMetrics
}

// ownMetrics is as much of the collector's own metrics as the page shows.
type ownMetrics struct {
	// of is the address that they were read from, and until is when they are too old.
	of     string
	until  time.Time
	losses []loss
	budget string
	err    error
}

// maxMetricsAge is the longest age of the collector's own metrics on a page.
const maxMetricsAge = 5 * time.Second

// wholeConfig is as much of the collector's effective configuration as the page shows.
type wholeConfig struct {
	Extensions map[string]listener `mapstructure:"extensions"`
	Exporters  map[string]listener `mapstructure:"exporters"`
	Service    struct {
		Extensions []string                  `mapstructure:"extensions"`
		Pipelines  map[string]pipelineConfig `mapstructure:"pipelines"`
		Telemetry  struct {
			Metrics struct {
				Readers []struct {
					Pull struct {
						Exporter struct {
							Prometheus struct {
								Host string `mapstructure:"host"`
								Port int    `mapstructure:"port"`
							} `mapstructure:"prometheus"`
						} `mapstructure:"exporter"`
					} `mapstructure:"pull"`
				} `mapstructure:"readers"`
			} `mapstructure:"metrics"`
		} `mapstructure:"telemetry"`
	} `mapstructure:"service"`
}

// listener is a component that may have pages.
type listener struct {
	Endpoint string `mapstructure:"endpoint"`
	TLS      any    `mapstructure:"tls"`
}

type pipelineConfig struct {
	Receivers  []string `mapstructure:"receivers"`
	Processors []string `mapstructure:"processors"`
	Exporters  []string `mapstructure:"exporters"`
}

// fault is a component that reported a status other than that all is well.
type fault struct {
	Component, Status, Reason string
}

// NotifyConfigSnapshot learns the collector's configuration, in which passwords are redacted.
func (w *whole) NotifyConfigSnapshot(_ context.Context, snapshot extensioncapabilities.ConfigSnapshot) error {
	var config wholeConfig
	if err := snapshot.Effective().Unmarshal(&config, confmap.WithIgnoreUnused()); err != nil {
		return fmt.Errorf("read the collector's configuration: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.config = config
	return nil
}

// ComponentStatusChanged learns the status of a component.
func (w *whole) ComponentStatusChanged(source *componentstatus.InstanceID, event *componentstatus.Event) {
	id := strings.ToLower(source.Kind().String()) + " " + source.ComponentID().String()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !componentstatus.StatusIsError(event.Status()) {
		delete(w.faults, id)
		return
	}
	f := fault{Component: id, Status: strings.TrimPrefix(event.Status().String(), "Status")}
	if err := event.Err(); err != nil {
		f.Reason = clip(err.Error(), maxText)
	}
	if w.faults == nil {
		w.faults = map[string]fault{}
	}
	w.faults[id] = f
}

// wholePage is the collector's part of the first page.
type wholePage struct {
	Pipelines []shownPipeline
	Faults    []fault
	Losses    []loss
	// Budget is empty if the collector has no memory_budget.
	Budget string
	// Unread is the reason why losses and the budget are not known.
	Unread string
	Links  []link
}

type shownPipeline struct {
	Name, Steps string
}

// loss is a counter that is above zero.
type loss struct {
	Data, By string
	Count    int64
}

type link struct{ Name, URL string }

// page is the state now, for a client that calls the server by a name.
func (w *whole) page(ctx context.Context, host string) wholePage {
	w.mu.Lock()
	config, faults := w.config, slices.Collect(maps.Values(w.faults))
	w.mu.Unlock()
	slices.SortFunc(faults, func(a, b fault) int { return cmp.Compare(a.Component, b.Component) })
	p := wholePage{Faults: faults, Links: config.links(host)}
	for _, name := range slices.Sorted(maps.Keys(config.Service.Pipelines)) {
		of := config.Service.Pipelines[name]
		steps := []string{strings.Join(of.Receivers, ", ")}
		steps = append(append(steps, of.Processors...), strings.Join(of.Exporters, ", "))
		p.Pipelines = append(p.Pipelines, shownPipeline{name, strings.Join(steps, " → ")})
	}
	metrics := w.recentMetrics(ctx, &config)
	p.Losses, p.Budget = metrics.losses, metrics.budget
	if metrics.err != nil {
		p.Unread = metrics.err.Error()
	}
	return p
}

// recentMetrics returns the collector's own metrics, and reads them if they are too old.
func (w *whole) recentMetrics(ctx context.Context, config *wholeConfig) ownMetrics {
	w.reading.Lock()
	defer w.reading.Unlock()
	address := config.metricsAddress()
	if w.read.of == address && time.Now().Before(w.read.until) {
		return w.read
	}
	read := config.readMetrics(ctx)
	if ctx.Err() == nil {
		w.read = read
		w.read.of, w.read.until = address, time.Now().Add(maxMetricsAge)
	}
	return read
}

// readMetrics reads the collector's own metrics.
func (c *wholeConfig) readMetrics(ctx context.Context) (read ownMetrics) {
	metrics, err := c.ownMetrics(ctx)
	if err != nil {
		read.err = err
		return read
	}
	for _, counter := range slices.Concat(losses.Dropped, losses.Lost, losses.Limited) {
		for _, m := range metrics[counter.Metric].GetMetric() {
			if count := valueOf(m); count > 0 {
				read.losses = append(read.losses, loss{counter.Data, labelOf(m, counter.Label), int64(count)})
			}
		}
	}
	const budget = "otelcol_extension_memory_budget_"
	if limit := metrics[budget+"limit"].GetMetric(); len(limit) > 0 {
		used := 0.0
		for _, m := range metrics[budget+"usage"].GetMetric() {
			used += valueOf(m)
		}
		const mebibyte = 1 << 20
		read.budget = fmt.Sprintf("%.0f of %.0f MiB", used/mebibyte, valueOf(limit[0])/mebibyte)
	}
	return read
}

// pagesOf are the components with pages, by type, and where these are.
var pagesOf = map[string][]link{
	"zpages":      {{"pipelines", "/debug/pipelinez"}, {"extensions", "/debug/extensionz"}, {"service", "/debug/servicez"}},
	"flame_graph": {{"flame graphs", "/"}},
	"prometheus":  {{"metrics of programs", "/metrics"}},
}

// links are the other pages of the collector.
func (c wholeConfig) links(host string) (all []link) {
	if address := c.metricsAddress(); address != "" {
		all = append(all, link{"metrics of the collector", "http://" + seenFrom(host, address) + "/metrics"})
	}
	used := slices.Clone(c.Service.Extensions)
	for _, p := range c.Service.Pipelines {
		used = append(used, p.Exporters...)
	}
	slices.Sort(used)
	for _, id := range slices.Compact(used) {
		kind, _, _ := strings.Cut(id, "/")
		at, ok := c.Extensions[id]
		if !ok {
			at = c.Exporters[id]
		}
		for _, page := range pagesOf[kind] {
			if at.Endpoint == "" {
				continue
			}
			scheme := "http://"
			if at.TLS != nil {
				scheme = "https://"
			}
			all = append(all, link{id + ": " + page.Name, scheme + seenFrom(host, at.Endpoint) + page.URL})
		}
	}
	return all
}

// seenFrom is the address of a listener for a client of the same machine: one on all addresses, or on the machine's own, has the
// name by which the client calls this server.
func seenFrom(host, endpoint string) string {
	listens, port, err := net.SplitHostPort(endpoint)
	if err != nil {
		return endpoint
	}
	if ip := net.ParseIP(listens); listens == "" || listens == "localhost" || ip.IsUnspecified() || ip.IsLoopback() {
		return net.JoinHostPort(host, port)
	}
	return endpoint
}

// metricsAddress is where the collector serves its own metrics, or empty.
func (c wholeConfig) metricsAddress() string {
	for _, r := range c.Service.Telemetry.Metrics.Readers {
		if p := r.Pull.Exporter.Prometheus; p.Port != 0 {
			return net.JoinHostPort(p.Host, strconv.Itoa(p.Port))
		}
	}
	return ""
}

// Bounds of reading the collector's own metrics.
const (
	metricsTimeout  = 2 * time.Second
	maxMetricsBytes = 16 << 20
)

// ownMetrics reads the collector's own metrics, by name.
func (c wholeConfig) ownMetrics(ctx context.Context) (map[string]*dto.MetricFamily, error) {
	address := c.metricsAddress()
	if address == "" {
		return nil, fmt.Errorf("no reader with pull.exporter.prometheus is in service::telemetry::metrics::readers")
	}
	ctx, cancel := context.WithTimeout(ctx, metricsTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+seenFrom("localhost", address)+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read the collector's own metrics: %w", err)
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(io.LimitReader(response.Body, maxMetricsBytes))
	if err != nil {
		return nil, fmt.Errorf("read the collector's own metrics: %w", err)
	}
	// Readers can be configured to add the suffix.
	for name, family := range families {
		families[strings.TrimSuffix(name, "_total")] = family
	}
	return families, nil
}

// valueOf is the value of a counter or gauge.
func valueOf(m *dto.Metric) float64 {
	return m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue()
}

func labelOf(m *dto.Metric, name string) string {
	for _, label := range m.GetLabel() {
		if label.GetName() == name {
			return clip(label.GetValue(), maxText)
		}
	}
	return ""
}
