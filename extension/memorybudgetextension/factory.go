// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package memorybudgetextension

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"

	"github.com/callbraid/callbraid/extension/memorybudgetextension/internal/metadata"
)

// NewFactory makes the factory of the extension.
func NewFactory() extension.Factory {
	return extension.NewFactory(metadata.Type, createDefaultConfig,
		func(_ context.Context, settings extension.Settings, config component.Config) (extension.Extension, error) {
			return newMemoryBudget(settings, config.(*Config))
		}, metadata.ExtensionStability)
}
