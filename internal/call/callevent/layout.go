// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package callevent

// Version is the format version that this package writes and reads.
const Version = 1

const (
	// MaxBatchBytes is the largest size of a batch, because gRPC and Kafka refuse messages of more
	// than a few MiB.
	MaxBatchBytes = 1 << 20
	// MinBatchBytes is the smallest bound for a Packer: one event fits whose names have their full
	// length.
	MinBatchBytes = 160 << 10
	// MaxNameBytes bounds every name in a batch; Packer cuts longer ones.
	MaxNameBytes = 16 << 10
	// MaxEventAttributes is the largest number of attributes that a Packer adds with an event.
	MaxEventAttributes = 16
	// MaxBarriers is the largest number of barriers in a batch.
	MaxBarriers = 1024
	// MaxRenames is the largest number of renames in a batch.
	MaxRenames = 4096
	// MaxSequence is the largest sequence number.
	MaxSequence = 1 << 62
	// MaxResolution is the coarsest clock, one second in nanoseconds.
	MaxResolution = 1_000_000_000

	maxTime = 1 << 62

	headerSize    = 96
	eventSize     = 20
	barrierSize   = 24
	attributeSize = 12
	functionSize  = 20
	laneSize      = 12
	exceptionSize = 4
	valueSize     = 12
	renameSize    = 36

	// maxIndexes is the largest number of entries in a table that events point into: an index has 16
	// bits, and exceptions need one value for none.
	maxIndexes = 1<<16 - 1
)
