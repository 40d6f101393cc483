// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package nesting

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Logs is [Traces] for log records and their bodies.
func Logs(ld plog.Logs, most int) error {
	for _, rl := range ld.ResourceLogs().All() {
		if err := inMap(placeResource, "", rl.Resource().Attributes(), most); err != nil {
			return err
		}
		for _, sl := range rl.ScopeLogs().All() {
			if err := inMap(placeScope, sl.Scope().Name(), sl.Scope().Attributes(), most); err != nil {
				return err
			}
			for _, record := range sl.LogRecords().All() {
				if err := inMap(placeRecord, sl.Scope().Name(), record.Attributes(), most); err != nil {
					return err
				}
				if isDeeper(record.Body(), most) {
					return &Error{Place: placeBody, Scope: Cut(sl.Scope().Name()), Most: most}
				}
			}
		}
	}
	return nil
}

// Metrics is [Traces] for data points, their exemplars and the metadata of metrics.
func Metrics(md pmetric.Metrics, most int) error {
	for _, rm := range md.ResourceMetrics().All() {
		if err := inMap(placeResource, "", rm.Resource().Attributes(), most); err != nil {
			return err
		}
		for _, sm := range rm.ScopeMetrics().All() {
			if err := inMap(placeScope, sm.Scope().Name(), sm.Scope().Attributes(), most); err != nil {
				return err
			}
			for _, metric := range sm.Metrics().All() {
				if err := inMetric(sm.Scope().Name(), metric, most); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func inMetric(scope string, metric pmetric.Metric, most int) error {
	if err := inMap(placeMetric, scope, metric.Metadata(), most); err != nil {
		return err
	}
	switch metric.Type() {
	case pmetric.MetricTypeGauge:
		return inPoints(scope, metric.Gauge().DataPoints().All(), most)
	case pmetric.MetricTypeSum:
		return inPoints(scope, metric.Sum().DataPoints().All(), most)
	case pmetric.MetricTypeHistogram:
		return inPoints(scope, metric.Histogram().DataPoints().All(), most)
	case pmetric.MetricTypeExponentialHistogram:
		return inPoints(scope, metric.ExponentialHistogram().DataPoints().All(), most)
	case pmetric.MetricTypeSummary:
		for _, point := range metric.Summary().DataPoints().All() {
			if err := inMap(placePoint, scope, point.Attributes(), most); err != nil {
				return err
			}
		}
	case pmetric.MetricTypeEmpty:
	}
	return nil
}

// point is a data point that can have exemplars.
type point interface {
	Attributes() pcommon.Map
	Exemplars() pmetric.ExemplarSlice
}

func inPoints[P point](scope string, points func(func(int, P) bool), most int) error {
	for _, point := range points {
		if err := inMap(placePoint, scope, point.Attributes(), most); err != nil {
			return err
		}
		for _, exemplar := range point.Exemplars().All() {
			if err := inMap(placeExemplar, scope, exemplar.FilteredAttributes(), most); err != nil {
				return err
			}
		}
	}
	return nil
}

// Profiles is [Traces] for profiles, whose own attributes are in their dictionary.
func Profiles(pd pprofile.Profiles, most int) error {
	for _, attribute := range pd.Dictionary().AttributeTable().All() {
		if isDeeper(attribute.Value(), most) {
			return &Error{Place: placeProfiles, Most: most}
		}
	}
	for _, rp := range pd.ResourceProfiles().All() {
		if err := inMap(placeResource, "", rp.Resource().Attributes(), most); err != nil {
			return err
		}
		for _, sp := range rp.ScopeProfiles().All() {
			if err := inMap(placeScope, sp.Scope().Name(), sp.Scope().Attributes(), most); err != nil {
				return err
			}
		}
	}
	return nil
}

// inMap returns an error if an attribute of a place is too deep.
func inMap(place, scope string, m pcommon.Map, most int) error {
	if key, found := deeper(m, most); found {
		return &Error{Place: place, Scope: Cut(scope), Key: Cut(key), Most: most}
	}
	return nil
}
