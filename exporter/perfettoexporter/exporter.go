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

// The reasons for values of counters that are dropped.
const (
	reasonFile        = "file"
	reasonMaxCounters = "max_counters"
)

// perfetto is the exporter of a configuration.
type perfetto struct {
	config    *Config
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	now       func() time.Time

	// done ends the goroutine that flushes, and flushing waits for its end.
	done     chan struct{}
	flushing sync.WaitGroup

	mu     sync.Mutex // of all below
	file   *recordfile.File
	writer *tracefile.Writer
	reader reader
	// over is why no chunk can be written before a new file begins, which failed before.
	over string
	// since is when the file got its first chunk.
	since time.Time
	// dropping is the burst of chunks that are dropped.
	dropping logline.Burst
	// invalid are spans and other items with times that readers do not accept.
	invalid logline.Seldom
	// uncounted are values of counters for which a file has no room.
	uncounted logline.Seldom
	// endless are spans whose ends are missing or before their starts.
	endless logline.Seldom
	// large are messages with items of which parts were left out.
	large logline.Seldom
	// omitted is the reported number of parts that were left out.
	omitted int64
	// overlapping is the reported number of overlapping tracks.
	overlapping int64
}

func newPerfetto(set exporter.Settings, config *Config) (*perfetto, error) {
	telemetry, err := metadata.NewTelemetryBuilder(ownmetrics.Of(component.KindExporter, set.ID, set.TelemetrySettings))
	if err != nil {
		return nil, err
	}
	e := &perfetto{config: config, logger: set.Logger, telemetry: telemetry, now: time.Now, done: make(chan struct{})}
	e.writer = tracefile.NewWriter(config.MaxTracks, config.MaxCounters)
	e.reader.writer = e.writer
	e.file = recordfile.New(config.settings(), recordfile.Observer{
		Repaired: e.onRepaired, Rotated: e.onRotated, Replaced: e.onReplaced, Unlocked: e.onUnlocked,
	})
	return e, nil
}

// Start opens the file. An earlier file is renamed, because its tracks have the numbers of the new one's.
func (e *perfetto) Start(context.Context, component.Host) error {
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

// Shutdown writes the last chunk, and closes the file.
func (e *perfetto) Shutdown(context.Context) error {
	close(e.done)
	e.flushing.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.flush()
	e.telemetry.Shutdown()
	return e.file.Close()
}

func (e *perfetto) flushRegularly() {
	ticker := time.NewTicker(e.config.FlushInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			e.mu.Lock()
			e.flush()
			e.expire()
			e.mu.Unlock()
		case <-e.done:
			return
		}
	}
}

// flush writes the chunk. If the file cannot be written, the chunk is dropped: the next one needs nothing of it. The
// same holds if a new file cannot be begun, because the old one must not grow.
func (e *perfetto) flush() {
	if content := e.writer.Content(); content != (tracefile.Content{}) {
		if err := e.write(); err != nil {
			e.drop(content, err)
		} else {
			e.count(content)
		}
	}
	if reason := e.fileIsOver(); reason != "" {
		if err := e.beginFile(reason); err != nil {
			e.logger.Debug("Could not begin a new file", zap.String("path", e.config.Path), zap.Error(err))
		}
	}
}

// expire deletes the files that are too old.
func (e *perfetto) expire() {
	if err := e.file.Expire(); err != nil {
		e.logger.Debug("Could not delete an earlier file", zap.String("path", e.config.Path), zap.Error(err))
	}
}

// write writes the chunk. It is over even after an error. A chunk that is larger than usual may have no room in the file. Then
// it begins a new one, and the tracks go on in it.
func (e *perfetto) write() error {
	record, err := e.writer.Record()
	if err != nil {
		return err
	}
	if size := e.file.Size(); e.over == "" && size > 0 && size+int64(len(record)) > e.maxBytes() {
		e.over = reasonSize
	}
	if e.over != "" {
		if err := e.rotate(); err != nil {
			return fmt.Errorf("begin a new file: %w", err)
		}
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

// count counts a chunk that was written.
func (e *perfetto) count(c tracefile.Content) {
	ctx := context.Background()
	e.telemetry.ExporterPerfettoSlices.Add(ctx, int64(c.Slices))
	e.telemetry.ExporterPerfettoValues.Add(ctx, int64(c.Values))
	e.telemetry.ExporterPerfettoLogRecords.Add(ctx, int64(c.LogRecords))
	if e.dropping.Over() {
		e.logger.Info("Spans are written again", zap.String("path", e.config.Path))
	}
}

// drop counts a chunk that can't be written, and logs the first of a burst.
func (e *perfetto) drop(c tracefile.Content, err error) {
	ctx := context.Background()
	e.telemetry.ExporterPerfettoDroppedSlices.Add(ctx, int64(c.Slices))
	e.telemetry.ExporterPerfettoDroppedLogRecords.Add(ctx, int64(c.LogRecords))
	e.dropValues(ctx, c.Values, reasonFile)
	if _, due := e.dropping.Count(e.now()); due {
		e.logger.Warn("Dropped spans, because the file cannot be written. If the disk is full, free room, or lower rotation.max_megabytes or rotation.max_total_megabytes",
			zap.String("path", e.config.Path), zap.Int("spans", c.Slices), zap.Int("values", c.Values), zap.Int("log_records", c.LogRecords), zap.Error(err))
	}
}

func (e *perfetto) dropValues(ctx context.Context, values int, reason string) {
	if values > 0 {
		e.telemetry.ExporterPerfettoDroppedValues.Add(ctx, int64(values), metric.WithAttributes(attribute.String("reason", reason)))
	}
}

// maxBytes is the size that no file exceeds.
func (e *perfetto) maxBytes() int64 { return int64(e.config.Rotation.MaxMegabytes) * mib }

// roomForChunk is more than a usual chunk takes.
const roomForChunk = 640 << 10

// fileIsOver returns why the next chunk must begin a new file, or nothing. It is called between two chunks.
func (e *perfetto) fileIsOver() string {
	size := e.file.Size()
	switch {
	case e.writer.Crowded():
		return reasonTracks
	case size > 0 && size+roomForChunk > e.maxBytes():
		return reasonSize
	case size > 0 && e.config.Rotation.MaxAge > 0 && e.now().Sub(e.since) >= e.config.Rotation.MaxAge:
		return reasonAge
	}
	return ""
}

// beginFile lets the next chunk begin a new file. If it fails, no chunk is written until it succeeds, so all tracks can be
// forgotten in any case.
func (e *perfetto) beginFile(reason string) error {
	e.writer.Reset()
	e.reader.process = nil
	e.over = reason
	return e.rotate()
}

func (e *perfetto) rotate() error {
	counted := e.file.Size() > 0
	if err := e.file.Rotate(); err != nil {
		return err
	}
	if counted {
		e.telemetry.ExporterPerfettoRotations.Add(context.Background(), 1, metric.WithAttributes(attribute.String("reason", e.over)))
	}
	e.over = ""
	return nil
}

// countUnwritten counts what the reader did not read from a message: items with times that readers do not accept, values of
// further counters, and parts of large items.
func (e *perfetto) countUnwritten(ctx context.Context) {
	if n := e.reader.invalid; n > 0 {
		e.telemetry.ExporterPerfettoInvalidTimes.Add(ctx, int64(n))
		if since, due := e.invalid.Count(e.now()); due {
			e.logger.Warn("Dropped spans, events, values or log records without a time, or with one after the year 2262",
				zap.Int("dropped", n), zap.Int("times_since_last_line", since))
		}
	}
	if n := e.reader.uncounted; n > 0 {
		e.dropValues(ctx, n, reasonMaxCounters)
		if since, due := e.uncounted.Count(e.now()); due {
			e.logger.Warn("Dropped values of metrics, because the file has as many counters as max_counters allows",
				zap.Int("dropped", n), zap.Int("times_since_last_line", since))
		}
	}
	if n := e.reader.endless; n > 0 {
		e.telemetry.ExporterPerfettoInvalidEnds.Add(ctx, int64(n))
		if since, due := e.endless.Count(e.now()); due {
			e.logger.Warn("Wrote spans without a length, because they have no end, or one before their start",
				zap.Int("spans", n), zap.Int("times_since_last_line", since))
		}
	}
	if n := e.writer.Omitted() - e.omitted; n > 0 {
		e.omitted += n
		e.telemetry.ExporterPerfettoOmitted.Add(ctx, n)
		if since, due := e.large.Count(e.now()); due {
			e.logger.Warn("Left out attributes, events or links of spans and log records that have too many or too large ones",
				zap.Int64("left_out", n), zap.Int("times_since_last_line", since))
		}
	}
	e.reader.invalid, e.reader.uncounted, e.reader.endless = 0, 0, 0
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
