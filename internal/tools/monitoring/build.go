// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"

	"github.com/callbraid/callbraid/internal/componentkit/losses"
)

// board is a dashboard.
type board struct {
	// name is that of the file, and with a prefix the ID by which Grafana finds the dashboard again.
	name, title, description string
	// services is a metric: those who look select some of the services that have it. Empty: there is nothing to select.
	services string
	rows     []row
}

// row is a heading and the panels below it.
type row struct {
	title  string
	panels []panel
}

// panel is one graph.
type panel struct {
	title, description string
	// unit is that of the values, as Grafana names it: "s", "bytes", "ops", "short", "percentunit".
	unit    string
	queries []query
}

// perSecond are queries of counters, each as a sum by a label.
func perSecond(counters []losses.Counter) (queries []query) {
	for _, c := range counters {
		queries = append(queries, query{"sum by (" + c.Label + ") (rate(" + c.Metric + "[$__rate_interval]))", c.Data + " {{" + c.Label + "}}"})
	}
	return queries
}

// query is an expression of PromQL, and the name of its series, with labels in {{}}.
type query struct{ expression, legend string }

const (
	sourceVariable  = "datasource"
	serviceVariable = "service"
	// panelWidth and panelHeight are in Grafana's units: the page is 24 wide.
	panelWidth, panelHeight = 12, 8
)

// source is the Prometheus that those who look have selected.
func source() common.DataSourceRef {
	kind, name := "prometheus", "${"+sourceVariable+"}"
	return common.DataSourceRef{Type: &kind, Uid: &name}
}

// Grafana before version 12 cannot import dashboards of the newer form.
//
//lint:ignore SA1019 the newer form is dashboardv2
func (b board) build() (dashboard.Dashboard, error) {
	//lint:ignore SA1019 the newer form is dashboardv2
	d := dashboard.NewDashboardBuilder(b.title).Uid("callbraid-"+b.name).Description(b.description).Tags([]string{"callbraid"}).
		Time("now-1h", "now").Refresh("30s").Tooltip(dashboard.DashboardCursorSyncCrosshair).
		WithVariable(dashboard.NewDatasourceVariableBuilder(sourceVariable).Label("Prometheus").Type("prometheus"))
	if b.services != "" {
		values := "label_values(" + b.services + ", job)"
		d.WithVariable(dashboard.NewQueryVariableBuilder(serviceVariable).Label("Service").Datasource(source()).
			Query(dashboard.StringOrMap{String: &values}).Refresh(dashboard.VariableRefreshOnTimeRangeChanged).
			Multi(true).IncludeAll(true).AllValue(".+"))
	}
	id := uint32(0)
	for _, r := range b.rows {
		id++
		d.WithRow(dashboard.NewRowBuilder(r.title).Id(id))
		for _, p := range r.panels {
			id++
			d.WithPanel(p.build(id))
		}
	}
	return d.Build()
}

func (p panel) build(id uint32) *timeseries.PanelBuilder {
	b := timeseries.NewPanelBuilder().Id(id).Title(p.title).Description(p.description).Unit(p.unit).Datasource(source()).
		Span(panelWidth).Height(panelHeight).Min(0).FillOpacity(10).ShowPoints(common.VisibilityModeNever).
		Legend(common.NewVizLegendOptionsBuilder().DisplayMode(common.LegendDisplayModeTable).Placement(common.LegendPlacementBottom).
			Calcs([]string{"lastNotNull", "max"}).ShowLegend(true))
	for i, q := range p.queries {
		b.WithTarget(prometheus.NewDataqueryBuilder().RefId(refID(i)).Expr(q.expression).LegendFormat(q.legend).Exemplar(true))
	}
	return b
}

// refID is the name of a panel's query, as Grafana names them: A to Z, then AA, AB and so on.
func refID(i int) string {
	last := string(rune('A' + i%26))
	if i < 26 {
		return last
	}
	return refID(i/26-1) + last
}
