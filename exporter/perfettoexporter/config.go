// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package perfettoexporter

import (
	"errors"
	"fmt"
	"math"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/callbraid/callbraid/exporter/perfettoexporter/internal/tracefile"
	"github.com/callbraid/callbraid/internal/componentkit/confignames"
	"github.com/callbraid/callbraid/internal/componentkit/recordfile"
	"github.com/callbraid/callbraid/internal/componentkit/setting"
)

// Config is the configuration of the exporter.
type Config struct {
	// Path is the file that is written. Earlier files have its name and a time.
	Path string `mapstructure:"path"`
	// CreateDirectory makes the directory of the file if there is none.
	CreateDirectory bool `mapstructure:"create_directory"`
	// FilePermissions and DirectoryPermissions are those of new files and directories, as
	// octal numbers.
	FilePermissions      string `mapstructure:"file_permissions"`
	DirectoryPermissions string `mapstructure:"directory_permissions"`
	// FlushInterval is how long a span may wait in memory until it is written.
	FlushInterval time.Duration `mapstructure:"flush_interval"`
	// MaxTracks is the number of threads and other tracks of a file, beside those of counters.
	MaxTracks int `mapstructure:"max_tracks"`
	// MaxCounters is the number of counters of a file: of metrics with their attributes.
	MaxCounters int `mapstructure:"max_counters"`
	// Rotation bounds the size of all files.
	Rotation RotationConfig `mapstructure:"rotation"`
}

// RotationConfig bounds the size of all files.
type RotationConfig struct {
	// MaxMegabytes is the size, in MiB, above which a file is renamed.
	MaxMegabytes int `mapstructure:"max_megabytes"`
	// MaxAge is the age at which a file is renamed; 0: none.
	MaxAge time.Duration `mapstructure:"max_age"`
	// MaxBackups is the number of renamed files to keep.
	MaxBackups int `mapstructure:"max_backups"`
	// MaxTotalMegabytes is the size of all files together, in MiB; 0: none.
	MaxTotalMegabytes int `mapstructure:"max_total_megabytes"`
	// MaxBackupAge is the time after its renaming at which a file is deleted; 0: none.
	MaxBackupAge time.Duration `mapstructure:"max_backup_age"`
}

const (
	mib = 1 << 20
	// mostMegabytes is a gibibyte: Perfetto loads whole files into memory.
	mostMegabytes = 1 << 10
	mostTracks    = 1_000_000
	// mostTotal is a pebibyte in MiB, or the largest int.
	mostTotal = min(1<<30, math.MaxInt)
	aYear     = 365 * 24 * time.Hour
)

func createDefaultConfig() component.Config {
	return &Config{
		FilePermissions:      "0600",
		DirectoryPermissions: "0700",
		FlushInterval:        time.Second,
		MaxTracks:            10_000,
		MaxCounters:          1000,
		Rotation:             RotationConfig{MaxMegabytes: 64, MaxBackups: 15},
	}
}

var (
	_ confmap.Unmarshaler = (*Config)(nil)
	_ confmap.Validator   = (*Config)(nil)
)

// Unmarshal reports the right name of a misspelt setting.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return confignames.Unmarshal(conf, c) }

// Validate returns all invalid settings, each with its field and its remedy.
func (c *Config) Validate() error {
	all := errors.Join(
		setting.Within("flush_interval", c.FlushInterval, 10*time.Millisecond, time.Hour),
		setting.Between("max_tracks", c.MaxTracks, 10, mostTracks),
		setting.Between("max_counters", c.MaxCounters, 0, mostTracks),
		setting.Between("rotation.max_megabytes", c.Rotation.MaxMegabytes, 1, mostMegabytes),
		setting.Between("rotation.max_backups", c.Rotation.MaxBackups, 1, 10_000),
	)
	if c.Path == "" {
		all = errors.Join(all, errors.New("path is empty: set it to a file, such as ./spans.perfetto-trace"))
	}
	if c.Rotation.MaxAge != 0 {
		all = errors.Join(all, setting.Within("rotation.max_age", c.Rotation.MaxAge, time.Second, aYear))
	}
	if c.Rotation.MaxBackupAge != 0 {
		all = errors.Join(all, setting.Within("rotation.max_backup_age", c.Rotation.MaxBackupAge, time.Second, aYear))
	}
	if least := 2 * c.Rotation.MaxMegabytes; c.Rotation.MaxTotalMegabytes != 0 && (c.Rotation.MaxTotalMegabytes < least || c.Rotation.MaxTotalMegabytes > mostTotal) {
		all = errors.Join(all, fmt.Errorf("rotation.max_total_megabytes is %d: set it to %d to %d, or to 0 for no limit. The least is twice rotation.max_megabytes",
			c.Rotation.MaxTotalMegabytes, least, mostTotal))
	}
	_, file := setting.Permissions("file_permissions", c.FilePermissions, setting.OwnerReadsAndWrites)
	_, directory := setting.Permissions("directory_permissions", c.DirectoryPermissions, setting.OwnerReaches)
	return errors.Join(all, file, directory)
}

// settings are those of the file. The configuration is valid. The exporter rotates the file itself, between two
// chunks, so a chunk is never too large for a file.
func (c *Config) settings() recordfile.Settings {
	file, _ := setting.Permissions("", c.FilePermissions, setting.OwnerReadsAndWrites)
	directory, _ := setting.Permissions("", c.DirectoryPermissions, setting.OwnerReaches)
	return recordfile.Settings{
		Path:            c.Path,
		CreateDirectory: c.CreateDirectory,
		FileMode:        file,
		DirectoryMode:   directory,
		MaxBytes:        2 * mostMegabytes * mib,
		MaxBackups:      c.Rotation.MaxBackups,
		MaxTotalBytes:   int64(c.Rotation.MaxTotalMegabytes) * mib,
		MaxBackupAge:    c.Rotation.MaxBackupAge,
		Starts:          []string{tracefile.Start},
		LastEnd:         recordfile.LastPacketEnd,
	}
}
