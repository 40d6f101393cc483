// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package memorybudgetextension

import (
	"strings"

	"go.opentelemetry.io/collector/confmap"
)

const (
	limiter = "memory_limiter"
	// limiterPercentage is the share of a memory_limiter's limit that the budget has by
	// default. The other memory is for the garbage of a moment, for queues of exporters, and
	// for the collector itself: the limiter counts all of it.
	limiterPercentage = 40
	// tightPercentage is the share from which on a configured limit is worth a
	// warning.
	tightPercentage = 70
)

// limiterLimit finds the lowest hard limit of all memory_limiter processors and extensions
// that are in use, in bytes, and the place of it. The place is empty if there is none. A
// collector starts no component that neither a pipeline nor the list of extensions names.
func limiterLimit(collector *confmap.Conf, available int64) (bytes int64, place string) {
	if collector == nil {
		return 0, ""
	}
	var service struct {
		Extensions []string `mapstructure:"extensions"`
		Pipelines  map[string]struct {
			Processors []string `mapstructure:"processors"`
		} `mapstructure:"pipelines"`
	}
	// A configuration that cannot be read ends the collector before this.
	if conf, err := collector.Sub("service"); err != nil || conf.Unmarshal(&service, confmap.WithIgnoreUnused()) != nil {
		return 0, ""
	}
	used := map[string][]string{"extensions": service.Extensions}
	for _, pipeline := range service.Pipelines {
		used["processors"] = append(used["processors"], pipeline.Processors...)
	}
	for class, ids := range used {
		all, _ := collector.Get(class).(map[string]any)
		for _, id := range ids {
			if name, _, _ := strings.Cut(id, "/"); name != limiter {
				continue
			}
			limit := limitOf(all[id], available)
			if limit > 0 && (place == "" || limit < bytes) {
				bytes, place = limit, class+"::"+id
			}
		}
	}
	return bytes, place
}

// limitOf is the hard limit by the settings of one memory_limiter, in bytes; 0: it has none.
func limitOf(settings any, available int64) int64 {
	values, _ := settings.(map[string]any)
	conf := confmap.NewFromStringMap(values)
	var limit struct {
		MiB        int64 `mapstructure:"limit_mib"`
		Percentage int64 `mapstructure:"limit_percentage"`
	}
	// Settings that cannot be read are that component's matter: it has refused them before.
	if conf.Unmarshal(&limit, confmap.WithIgnoreUnused()) != nil {
		return 0
	}
	if limit.MiB > 0 {
		return limit.MiB * mib
	}
	return available / 100 * limit.Percentage
}
