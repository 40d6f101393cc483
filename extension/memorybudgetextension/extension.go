// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package memorybudgetextension

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensioncapabilities"
	"go.opentelemetry.io/collector/extension/extensionmiddleware"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/callbraid/callbraid/extension/memorybudgetextension/internal/metadata"
	"github.com/callbraid/callbraid/internal/componentkit/budget"
	"github.com/callbraid/callbraid/internal/componentkit/ownmetrics"
)

// memoryBudget is the extension.
type memoryBudget struct {
	config    *Config
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	budget    *budget.Budget
	// available is the memory that the process may use, in bytes.
	available int64
	goLimit   *goLimit

	// requests judge those of the servers that have the extension as middleware. It is made by
	// the first of them.
	requests func() *requests
}

var (
	_ extension.Extension                         = (*memoryBudget)(nil)
	_ extensioncapabilities.ConfigSnapshotWatcher = (*memoryBudget)(nil)
	_ budget.Provider                             = (*memoryBudget)(nil)
	_ extensionmiddleware.GRPCServer              = (*memoryBudget)(nil)
	_ extensionmiddleware.HTTPServer              = (*memoryBudget)(nil)
)

func newMemoryBudget(settings extension.Settings, config *Config) (*memoryBudget, error) {
	x := &memoryBudget{config: config, logger: settings.Logger, available: budget.Available(), goLimit: newGoLimit()}
	x.budget = budget.New(x.own())
	telemetry, err := metadata.NewTelemetryBuilder(ownmetrics.Of(component.KindExtension, settings.ID, settings.TelemetrySettings))
	if err != nil {
		return nil, err
	}
	x.telemetry = telemetry
	x.requests = sync.OnceValue(func() *requests {
		return newRequests(config.Requests, settings.Logger, telemetry, x.budget)
	})
	if err := x.observe(); err != nil {
		telemetry.Shutdown()
		return nil, err
	}
	return x, nil
}

// MemoryBudget returns the budget that the components of the collector share.
func (x *memoryBudget) MemoryBudget() *budget.Budget { return x.budget }

// GetGRPCServerOptions makes a gRPC server judge requests before it decodes them.
func (x *memoryBudget) GetGRPCServerOptions(context.Context) ([]grpc.ServerOption, error) {
	return newGRPCServer(x.requests()).options(), nil
}

// GetHTTPHandler makes an HTTP server judge requests before it decodes them.
func (x *memoryBudget) GetHTTPHandler(context.Context) (extensionmiddleware.WrapHTTPHandlerFunc, error) {
	return func(_ context.Context, next http.Handler) (http.Handler, error) {
		return newHTTPServer(x.requests(), next), nil
	}, nil
}

// Start does nothing: the limit is known when the collector's configuration is.
func (x *memoryBudget) Start(context.Context, component.Host) error { return nil }

// NotifyConfigSnapshot computes the limit from the configuration of the collector. It runs after
// the start of the extensions, and before that of the pipelines.
func (x *memoryBudget) NotifyConfigSnapshot(_ context.Context, snapshot extensioncapabilities.ConfigSnapshot) error {
	limit, why := x.own(), "limit_percentage of memory_budget"
	if x.config.LimitMiB > 0 {
		why = "limit_mib of memory_budget"
	}
	if allowed, by := limiterLimit(snapshot.Effective(), x.available); by != "" {
		switch share := allowed / 100 * limiterPercentage; {
		case x.config.LimitMiB == 0 && share < limit:
			limit, why = max(share, leastMiB*mib), by
		case x.config.LimitMiB > 0 && limit > allowed/100*tightPercentage:
			x.logger.Warn("limit_mib of memory_budget is near the limit of a memory_limiter, which refuses all data before the largest peer must free memory. Lower limit_mib, or leave it out",
				zap.Int64("limit_mib", limit/mib), zap.String("memory_limiter", by), zap.Int64("its_limit_mib", allowed/mib),
				zap.Int64("suggested_limit_mib", share/mib))
		}
		if x.config.SetGoMemoryLimit {
			x.goLimit.begin(allowed)
		}
	}
	x.budget.SetLimit(limit)
	x.logger.Info("Limiting the memory that peers of all components may use together",
		zap.Int64("limit_mib", limit/mib), zap.String("from", why))
	return nil
}

// own is the limit by the extension's own settings, in bytes.
func (x *memoryBudget) own() int64 {
	if x.config.LimitMiB > 0 {
		return int64(x.config.LimitMiB) * mib
	}
	return max(x.available/100*int64(x.config.LimitPercentage), leastMiB*mib)
}

// Shutdown ends the extension. Components that shut down later still use the budget.
func (x *memoryBudget) Shutdown(context.Context) error {
	x.budget.Stop()
	x.telemetry.Shutdown()
	x.goLimit.end()
	return nil
}

// observe reports the memory in use whenever metrics are collected.
func (x *memoryBudget) observe() error {
	holder := func(u *budget.Usage) metric.MeasurementOption {
		return metric.WithAttributes(attribute.String("holder", u.Group))
	}
	return errors.Join(
		x.telemetry.RegisterExtensionMemoryBudgetLimitCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(x.budget.Limit())
			return nil
		}),
		x.telemetry.RegisterExtensionMemoryBudgetUsageCallback(func(_ context.Context, o metric.Int64Observer) error {
			for _, u := range x.budget.Usages() {
				o.Observe(u.Bytes, holder(&u))
			}
			return nil
		}),
		x.telemetry.RegisterExtensionMemoryBudgetRequestsToGiveWayCallback(func(_ context.Context, o metric.Int64Observer) error {
			for _, u := range x.budget.Usages() {
				o.Observe(u.Asked, holder(&u))
			}
			return nil
		}),
	)
}
