// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package process

// Limit is one of the settings under limits that a server may reach.
type Limit struct {
	Setting string
	// Reached counts how often a process reached it.
	Reached func(p *Process) int64
	// Then describes the consequence.
	Then string
}

var Limits = [...]Limit{
	{"max_metric_points", (*Process).foldedByPart, "each server has an equal part; further classes, and further pairs of class and file, count as other"},
	{"max_classes", func(p *Process) int64 { return foldedBy(!p.settings.ClassesArePart, p.classes.Folded) }, "objects of further classes count as those of the class other"},
	{"max_files", func(p *Process) int64 { return p.allocations.Files.Folded }, "allocations in further files count as those in the file other"},
	{"max_sites", func(p *Process) int64 { return foldedBy(!p.settings.SitesArePart, p.allocations.Folded) }, "further pairs of class and file count as other"},
	{"max_tracked_objects", func(p *Process) int64 { return p.objects.Evicted() }, "the class of objects that were created longest ago is forgotten"},
	{"max_dump_objects", func(p *Process) int64 { return p.dumps.Unchecked }, "references of such dumps are not checked"},
	{"max_frames", func(p *Process) int64 { return p.samples.TooDeep + p.snapshots.TooDeep }, "CPU samples of deeper stacks are dropped, and allocations count without them"},
	{"max_profile_stacks", func(p *Process) int64 { return p.snapshots.Crowded + p.snapshots.Dropped }, "further stacks of a snapshot of allocations are left out; or those beyond half of limits.max_queued_sample_bytes"},
}

// foldedByPart counts names and sites that count as other because of the process's part of
// max_metric_points.
func (p *Process) foldedByPart() int64 {
	return foldedBy(p.settings.ClassesArePart, p.classes.Folded) + foldedBy(p.settings.SitesArePart, p.allocations.Folded)
}

// foldedBy returns folded if a limit is the binding one, and 0 otherwise.
func foldedBy(binds bool, folded int64) int64 {
	if binds {
		return folded
	}
	return 0
}
