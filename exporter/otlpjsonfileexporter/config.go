// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package otlpjsonfileexporter

import (
	"errors"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/exporter/exporterhelper"

	"github.com/callbraid/callbraid/internal/componentkit/confignames"
	"github.com/callbraid/callbraid/internal/componentkit/recordfile"
	"github.com/callbraid/callbraid/internal/componentkit/setting"
)

// Config is the configuration of the exporter.
type Config struct {
	// Path is the file that lines are appended to.
	Path string `mapstructure:"path"`
	// CreateDirectory makes the directory of the file if there is none.
	CreateDirectory bool `mapstructure:"create_directory"`
	// FilePermissions and DirectoryPermissions are those of new files and directories, as
	// octal numbers.
	FilePermissions      string `mapstructure:"file_permissions"`
	DirectoryPermissions string `mapstructure:"directory_permissions"`
	// Fsync lets a hand-over return when its line is on the disk.
	Fsync bool `mapstructure:"fsync"`
	// Rotation bounds the size of all files.
	Rotation RotationConfig `mapstructure:"rotation"`
	// MaxAttributeDepth is how many levels of lists and maps an attribute may have.
	MaxAttributeDepth int `mapstructure:"max_attribute_depth"`

	// TimeoutConfig is how long a hand-over may wait for others; 0: until they are written.
	exporterhelper.TimeoutConfig `mapstructure:",squash"`
	// QueueConfig and RetryConfig are those of the Collector; there is neither unless they
	// are configured, so that an error reaches the caller.
	QueueConfig configoptional.Optional[exporterhelper.QueueBatchConfig] `mapstructure:"sending_queue"`
	RetryConfig configretry.BackOffConfig                                `mapstructure:"retry_on_failure"`
}

// RotationConfig bounds the size of all files.
type RotationConfig struct {
	// MaxMegabytes is the size, in MiB, above which a file is renamed.
	MaxMegabytes int `mapstructure:"max_megabytes"`
	// MaxBackups is the number of renamed files to keep.
	MaxBackups int `mapstructure:"max_backups"`
}

const (
	mib = 1 << 20
	// mostMegabytes is a tebibyte.
	mostMegabytes = 1 << 20
)

func createDefaultConfig() component.Config {
	retry := configretry.NewDefaultBackOffConfig()
	retry.Enabled = false
	return &Config{
		FilePermissions:      "0600",
		DirectoryPermissions: "0700",
		Rotation:             RotationConfig{MaxMegabytes: 1024, MaxBackups: 3},
		MaxAttributeDepth:    32,
		QueueConfig:          configoptional.Default(exporterhelper.NewDefaultQueueConfig()),
		RetryConfig:          retry,
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
		setting.Between("rotation.max_megabytes", c.Rotation.MaxMegabytes, 1, mostMegabytes),
		setting.Between("rotation.max_backups", c.Rotation.MaxBackups, 1, 10_000),
		setting.Between("max_attribute_depth", c.MaxAttributeDepth, 1, 1000),
	)
	if c.Path == "" {
		all = errors.Join(all, errors.New("path is empty: set it to a file, such as ./spans.json"))
	}
	if c.QueueConfig.HasValue() && !c.RetryConfig.Enabled {
		all = errors.Join(all, errors.New("retry_on_failure.enabled is false with a sending_queue, which then drops data that the file refuses: set it to true"))
	}
	_, file := setting.Permissions("file_permissions", c.FilePermissions, setting.OwnerReadsAndWrites)
	_, directory := setting.Permissions("directory_permissions", c.DirectoryPermissions, setting.OwnerReaches)
	return errors.Join(all, file, directory)
}

// settings are those of the file. The configuration is valid.
func (c *Config) settings() recordfile.Settings {
	file, _ := setting.Permissions("", c.FilePermissions, setting.OwnerReadsAndWrites)
	directory, _ := setting.Permissions("", c.DirectoryPermissions, setting.OwnerReaches)
	return recordfile.Settings{
		Path:            c.Path,
		CreateDirectory: c.CreateDirectory,
		FileMode:        file,
		DirectoryMode:   directory,
		MaxBytes:        int64(c.Rotation.MaxMegabytes) * mib,
		MaxBackups:      c.Rotation.MaxBackups,
		Sync:            c.Fsync,
		Starts:          lineStarts,
		LastEnd:         recordfile.LastLineEnd,
	}
}
