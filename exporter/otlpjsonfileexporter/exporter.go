// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package otlpjsonfileexporter

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/exporter/otlpjsonfileexporter/internal/metadata"
	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/componentkit/ownmetrics"
	"github.com/callbraid/callbraid/internal/componentkit/recordfile"
)

// fileExporter is the exporter of a configuration, for all its signals.
type fileExporter struct {
	config    *Config
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	// encoding bounds the hand-overs that are text at the same time to the number of processors,
	// because texts are several times as large as the data.
	encoding chan struct{}
	// refusing is the burst of hand-overs that are refused.
	refusing logline.Burst

	mu   sync.Mutex
	file *recordfile.File
}

func newFileExporter(set exporter.Settings, config *Config) (*fileExporter, error) {
	telemetry, err := metadata.NewTelemetryBuilder(ownmetrics.Of(component.KindExporter, set.ID, set.TelemetrySettings))
	if err != nil {
		return nil, err
	}
	e := &fileExporter{
		config:    config,
		logger:    set.Logger,
		telemetry: telemetry,
		encoding:  make(chan struct{}, runtime.GOMAXPROCS(0)),
	}
	e.file = recordfile.New(config.settings(), recordfile.Observer{
		Repaired: e.onRepaired, Rotated: e.onRotated, Replaced: e.onReplaced, Unlocked: e.onUnlocked,
	})
	return e, nil
}

// Start opens the file.
func (e *fileExporter) Start(context.Context, component.Host) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.file.Open()
}

// Shutdown closes the file.
func (e *fileExporter) Shutdown(context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.telemetry.Shutdown()
	return e.file.Close()
}

// write writes a hand-over as one line. After an error that is not permanent the file has no part
// of it, so the caller may try again.
func (e *fileExporter) write(ctx context.Context, encode func() ([]byte, error)) error {
	select {
	case e.encoding <- struct{}{}:
		defer func() { <-e.encoding }()
	case <-ctx.Done():
		return fmt.Errorf("wait for hand-overs that are being written to %s: %w", e.config.Path, ctx.Err())
	}
	text, err := encode()
	if err != nil {
		return consumererror.NewPermanent(fmt.Errorf("encode as OTLP JSON: %w", err))
	}
	line := append(text, '\n')
	e.mu.Lock()
	err = e.file.Append(line)
	e.mu.Unlock()
	if err != nil {
		return e.refuse(ctx, err)
	}
	e.telemetry.ExporterOtlpJSONFileLines.Add(ctx, 1)
	e.telemetry.ExporterOtlpJSONFileBytes.Add(ctx, int64(len(line)))
	if e.refusing.Over() {
		e.logger.Info("Lines are written again", zap.String("path", e.config.Path))
	}
	return nil
}

// refuse counts a hand-over that can't be written, and logs the first of a burst.
func (e *fileExporter) refuse(ctx context.Context, err error) error {
	e.telemetry.ExporterOtlpJSONFileRefusedLines.Add(ctx, 1)
	if since, due := e.refusing.Count(time.Now()); due {
		e.logger.Warn("Refused data, because its line cannot be written. If the disk is full, free room, or lower rotation.max_megabytes or rotation.max_backups",
			zap.String("path", e.config.Path), zap.Error(err), zap.Int("refused", since))
	}
	return fmt.Errorf("write a line to %s: %w", e.config.Path, err)
}

func (e *fileExporter) onRepaired(offset, bytes int64) {
	e.telemetry.ExporterOtlpJSONFileRepairedBytes.Add(context.Background(), bytes)
	e.logger.Warn("Cut a torn line off the end of the file. The process that wrote it ended before the line was whole",
		zap.String("path", e.config.Path), zap.Int64("offset", offset), zap.Int64("dropped_bytes", bytes))
}

func (e *fileExporter) onRotated(backup string) {
	e.telemetry.ExporterOtlpJSONFileRotations.Add(context.Background(), 1)
	e.logger.Debug("Renamed the file, because of rotation.max_megabytes", zap.String("path", e.config.Path), zap.String("backup", backup))
}

func (e *fileExporter) onReplaced() {
	e.logger.Info("Another program moved or deleted the file. The next line begins a new one", zap.String("path", e.config.Path))
}

func (e *fileExporter) onUnlocked(err error) {
	e.logger.Warn("The file system has no locks. Make sure that no other exporter and no other collector writes to the file",
		zap.String("path", e.config.Path), zap.Error(err))
}
