// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package storageclient opens the storage extension that the setting storage of a component names.
package storageclient

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// ErrSetting is the error if the setting names no storage extension. The texts of such errors begin with it.
var ErrSetting = errors.New("storage")

// Open opens the storage of a component.
func Open(ctx context.Context, host component.Host, extension component.ID, kind component.Kind, of component.ID) (storage.Client, error) {
	found, ok := host.GetExtensions()[extension]
	if !ok {
		return nil, fmt.Errorf("%w is %q: there is no such extension: add it under extensions and service.extensions", ErrSetting, extension)
	}
	store, ok := found.(storage.Extension)
	if !ok {
		return nil, fmt.Errorf("%w is %q: it is no storage extension: set it to one, such as file_storage", ErrSetting, extension)
	}
	client, err := store.GetClient(ctx, kind, of, "")
	if err != nil {
		return nil, fmt.Errorf("storage %q cannot be opened: %w. Two collectors cannot use one directory at the same time", extension, err)
	}
	return client, nil
}
