// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package memorybudgetextension

import (
	"errors"

	"go.opentelemetry.io/collector/component"

	"github.com/callbraid/callbraid/internal/budget"
	"github.com/callbraid/callbraid/internal/setting"
)

// Config is the configuration of the extension.
type Config struct {
	// LimitMiB is what all components together may hold for their peers, in MiB; 0: what
	// follows from LimitPercentage and from memory_limiter.
	LimitMiB int `mapstructure:"limit_mib"`
	// LimitPercentage is the same as a share of the memory that the process may use, in
	// percent: of GOMEMLIMIT, its cgroup's limit, or the machine's memory.
	LimitPercentage int `mapstructure:"limit_percentage"`
}

const (
	mib = 1 << 20
	// leastMiB lets one program of some thousand methods be traced.
	leastMiB = 16
	// mostMiB is a tebibyte: more is a mistake in the unit.
	mostMiB = 1 << 20
)

func createDefaultConfig() component.Config {
	return &Config{LimitPercentage: budget.DefaultPercentage}
}

// Validate names each setting that cannot be, with its remedy.
func (c *Config) Validate() error {
	err := setting.Between("limit_percentage", c.LimitPercentage, 1, 90)
	if c.LimitMiB != 0 {
		err = errors.Join(err, setting.Between("limit_mib", c.LimitMiB, leastMiB, mostMiB))
	}
	return err
}
