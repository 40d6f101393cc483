// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package perfettoexporter

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/exporter/perfettoexporter/internal/metadata"
	"github.com/callbraid/callbraid/exporter/perfettoexporter/internal/tracefile"
	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/componentkit/ownmetrics"
	"github.com/callbraid/callbraid/internal/componentkit/recordfile"
)

// The reasons for a new file.
const (
	reasonSize    = "size"
	reasonAge     = "age"
	reasonTracks  = "tracks"
	reasonRestart = "restart"
)

// perfetto is the exporter of a configuration.
type perfetto struct {
	config    *Config
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	now       func() time.Time

	stopping sync.Once
	// done ends the goroutine that flushes, and flushing waits for its end.
	done     chan struct{}
	flushing sync.WaitGroup

	mu     sync.Mutex // of all below
	file   *recordfile.File
	writer *tracefile.Writer
	reader reader
	// since is when the file got its first chunk.
	since time.Time
	// dropping is the burst of chunks that are dropped.
	dropping logline.Burst
	// invalid are spans and events with times that readers do not accept.
	invalid logline.Seldom
	// overlapping is the reported number of overlapping tracks.
	overlapping int64
}

func newPerfetto(set exporter.Settings, config *Config) (*perfetto, error) {
	telemetry, err := metadata.NewTelemetryBuilder(ownmetrics.Of(component.KindExporter, set.ID, set.TelemetrySettings))
	if err != nil {
		return nil, err
	}
	e := &perfetto{config: config, logger: set.Logger, telemetry: telemetry, now: time.Now, done: make(chan struct{})}
	e.writer = tracefile.NewWriter(config.MaxTracks)
	e.reader.writer = e.writer
	e.file = recordfile.New(config.settings(), recordfile.Observer{
		Repaired: e.onRepaired, Rotated: e.onRotated, Replaced: e.onReplaced, Unlocked: e.onUnlocked,
	})
	return e, nil
}

// start opens the file. An earlier file is renamed, because its tracks have the numbers of the new one's.
func (e *perfetto) start(context.Context, component.Host) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.file.Open(); err != nil {
		return err
	}
	if err := e.beginFile(reasonRestart); err != nil {
		_ = e.file.Close() // the first error matters
		return fmt.Errorf("begin a new file at %s: %w", e.config.Path, err)
	}
	e.flushing.Go(e.flushRegularly)
	return nil
}

// shutdown is safe twice, and without a start.
func (e *perfetto) shutdown(context.Context) (err error) {
	e.stopping.Do(func() {
		close(e.done)
		e.flushing.Wait()
		e.mu.Lock()
		defer e.mu.Unlock()
		e.flush()
		err = e.file.Close()
		e.telemetry.Shutdown()
	})
	return err
}

func (e *perfetto) flushRegularly() {
	ticker := time.NewTicker(e.config.FlushInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			e.mu.Lock()
			e.flush()
			e.mu.Unlock()
		case <-e.done:
			return
		}
	}
}

// flush writes the chunk. If the file cannot be written, the chunk is dropped: the next one needs nothing of it.
func (e *perfetto) flush() {
	slices := e.writer.Slices()
	if slices > 0 {
		if err := e.write(); err != nil {
			e.drop(slices, err)
		} else {
			e.telemetry.ExporterPerfettoSlices.Add(context.Background(), int64(slices))
			if e.dropping.Over() {
				e.logger.Info("Spans are written again", zap.String("path", e.config.Path))
			}
		}
	}
	if reason := e.fileIsOver(); reason != "" {
		if err := e.beginFile(reason); err != nil {
			e.logger.Debug("Could not begin a new file", zap.String("path", e.config.Path), zap.Error(err))
		}
	}
}

func (e *perfetto) write() error {
	record, err := e.writer.Record()
	if err != nil {
		return err
	}
	if e.file.Size() == 0 {
		e.since = e.now()
	}
	if err := e.file.Append(record); err != nil {
		return err
	}
	e.telemetry.ExporterPerfettoBytes.Add(context.Background(), int64(len(record)))
	if n := e.writer.Overlapping(); n > e.overlapping {
		e.telemetry.ExporterPerfettoOverlappingTracks.Add(context.Background(), n-e.overlapping)
		e.overlapping = n
	}
	return nil
}

// drop counts the spans of a chunk that can't be written, and logs the first of a burst.
func (e *perfetto) drop(slices int, err error) {
	e.telemetry.ExporterPerfettoDroppedSlices.Add(context.Background(), int64(slices))
	if _, due := e.dropping.Count(e.now()); due {
		e.logger.Warn("Dropped spans, because the file cannot be written. If the disk is full, free room, or lower rotation.max_megabytes or rotation.max_backups",
			zap.String("path", e.config.Path), zap.Int("dropped", slices), zap.Error(err))
	}
}

// roomForChunk is more than a chunk takes.
const roomForChunk = 256 << 10

// fileIsOver returns why the next chunk must begin a new file, or nothing. It is called between two chunks.
func (e *perfetto) fileIsOver() string {
	size := e.file.Size()
	switch {
	case e.writer.Crowded():
		return reasonTracks
	case size > 0 && size+roomForChunk > int64(e.config.Rotation.MaxMegabytes)*mib:
		return reasonSize
	case size > 0 && e.config.Rotation.MaxAge > 0 && e.now().Sub(e.since) >= e.config.Rotation.MaxAge:
		return reasonAge
	}
	return ""
}

// beginFile lets the next chunk begin a new file.
func (e *perfetto) beginFile(reason string) error {
	counted := e.file.Size() > 0
	if err := e.file.Rotate(); err != nil {
		return err
	}
	e.writer.Reset()
	e.reader.process = nil
	if counted {
		e.telemetry.ExporterPerfettoRotations.Add(context.Background(), 1, metric.WithAttributes(attribute.String("reason", reason)))
	}
	return nil
}

// countInvalid counts spans and events with times that readers do not accept.
func (e *perfetto) countInvalid(ctx context.Context, count int) {
	if count == 0 {
		return
	}
	e.telemetry.ExporterPerfettoInvalidTimes.Add(ctx, int64(count))
	if since, due := e.invalid.Count(e.now()); due {
		e.logger.Warn("Dropped spans or events without a time, or with one after the year 2262", zap.Int("dropped", count), zap.Int("hand_overs", since))
	}
}

func (e *perfetto) onRepaired(offset, bytes int64) {
	e.telemetry.ExporterPerfettoRepairedBytes.Add(context.Background(), bytes)
	e.logger.Warn("Cut a torn chunk off the end of the file. The process that wrote it ended before the chunk was whole",
		zap.String("path", e.config.Path), zap.Int64("offset", offset), zap.Int64("dropped_bytes", bytes))
}

func (e *perfetto) onRotated(backup string) {
	e.logger.Debug("Renamed the file, and began a new one", zap.String("path", e.config.Path), zap.String("backup", backup))
}

func (e *perfetto) onReplaced() {
	e.logger.Info("Another program moved or deleted the file. The next chunk begins a new one", zap.String("path", e.config.Path))
}

func (e *perfetto) onUnlocked(err error) {
	e.logger.Warn("The file system has no locks. Make sure that no other exporter and no other collector writes to the file",
		zap.String("path", e.config.Path), zap.Error(err))
}
