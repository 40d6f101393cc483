// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package handover sends the data of receivers to pipelines, which may refuse it. It makes the same promises to all
// receivers:
//
//   - A hand-over repeats a call after a temporary error, with growing pauses, until the time of the shutdown is over.
//     It drops data after a permanent error, or when that time is over. Each drop is counted with its reason, and
//     logged once for a burst.
//   - Each signal has its own hand-over, so a pipeline that refuses one signal delays no other. Batches of call events
//     wait, or are held in bounded memory (Batches). Log records, single spans, and profiles wait in bounded queues
//     (Queue). Refused metrics are dropped, because the next collection has all values again (Metrics).
//   - Each hand-over is observed once (receiverhelper), from its first call to its end.
//
// No function here runs for each event. The package knows pipelines and batches, and no protocol. Each receiver has its
// own counters.
//
// A receiver has one Logs and one Metrics. It has a Batches for each agent, so that agents wait separately. Receivers open
// them with the functions of receiverkit, which set the common fields. Without receiverkit:
//
//	settings := handover.Settings{
//		Context: ctx, // cancelled when the time of the shutdown is over
//		Observer: observer, Format: "zmtp", Logger: logger,
//		Retry: config.Retry, Now: time.Now,
//	}
//	batches := handover.NewBatches(handover.BatchesSettings{
//		Settings: settings, Next: next.Traces, ScopeName: metadata.ScopeName, ScopeVersion: build.Version,
//		WhileRefused: "the agent is not read until it accepts them",
//		Accepted: telemetry.batchAccepted, Dropped: telemetry.batchDropped, Retried: telemetry.handoverRetried,
//	})
//	batches.Send(batch, resource)
//
// A loop that sends many batches, such as the reader of a connection, runs in SendFrom.
//
// At its shutdown a receiver stops reading. Then it closes Logs and Metrics in a goroutine, which ends when all data is
// sent or dropped. Finish limits the time.
package handover
