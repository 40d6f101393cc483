// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package handover gives what receivers make to pipelines, which may refuse it. It
// keeps the same promises for all of them:
//
//   - What is refused with an error that may pass is tried again, with pauses that
//     become longer, until the time of the shutdown is over. What is refused for good,
//     or was not accepted in that time, is dropped: that is counted, with the reason,
//     and logged once for a burst.
//   - Each signal has its own hand-over, so that a pipeline that refuses one of them
//     holds up no other. Batches of call events wait, or are held in bounded memory
//     (Batches); log records, spans that are no batches, and profiles wait in bounded
//     queues (Queue); metrics are not tried again, because the next collection says it
//     all (Metrics).
//   - Each hand-over is observed once (receiverhelper), from its first try to its end.
//
// Nothing here is called for each event. The package knows pipelines and batches, and
// no protocol; what is counted, and under which names, is the receiver's own.
//
// A receiver has one Logs and one Metrics, and a Batches for each agent, which is held
// up alone:
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
// At its shutdown it stops reading, closes Logs and Metrics in a goroutine that ends
// when all is handed on, and gives that time: see Finish.
package handover
