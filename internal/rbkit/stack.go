// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkit

import "fmt"

// stack reads frames (section "Message frame for CPU_SAMPLE").
func (d *Decoder) stack() ([]Frame, error) {
	n, err := d.in.array("an array of frames")
	if err != nil {
		return nil, err
	}
	if uint64(n) > uint64(d.limits.Frames) {
		return nil, d.in.tooMany("frames", d.limits.Frames, n)
	}
	d.frames = d.frames[:0]
	for range n {
		d.frames = append(d.frames, Frame{})
		if err := d.frame(&d.frames[len(d.frames)-1]); err != nil {
			return nil, err
		}
	}
	return d.frames, nil
}

func (d *Decoder) frame(f *Frame) error {
	n, err := d.in.mapping("a map of a frame")
	if err != nil {
		return err
	}
	for range n {
		key, err := d.in.key()
		if err != nil {
			return err
		}
		switch key {
		case keyMethod:
			f.Method, err = d.in.text("the name of a method")
		case keyLabel:
			f.Label, err = d.in.text("the label of a frame")
		case keyFile:
			f.File, err = d.in.text("the file of a frame")
		case keyLine:
			f.Line, _, err = d.in.uintOrNil("the line of a frame")
		case keySingleton:
			f.Singleton, err = d.in.flag("whether a method is a singleton")
		case keyThread:
			f.Thread, f.HasThread, err = d.in.uintOrNil("the ID of a thread")
		default:
			err = d.in.skip("a value")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tooMany is the error of something that has more than its limit.
func (r *reader) tooMany(what string, limit int, got uint32) error {
	return r.fail(FaultLimit, fmt.Sprintf("at most %d %s", limit, what), fmt.Sprint(got))
}
