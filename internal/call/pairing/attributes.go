// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"unsafe"

	"github.com/callbraid/callbraid/internal/call/callevent"
)

const (
	// maxAttributes bounds the attributes of a frame. More are dropped and counted.
	maxAttributes = 128
	// keptAttributes is the number of places that an empty map of waiting attributes
	// keeps. Maps never shrink.
	keptAttributes = 256
	attributeBytes = int(unsafe.Sizeof(attribute{}))
	// waitingBytes is about the part of a map for the attributes of an event: its number,
	// a slice, and empty places.
	waitingBytes = 56
	// sharedBytes is about the memory of a shared value without its text.
	sharedBytes = int(unsafe.Sizeof(sharedValue{})) + 16
)

// attribute is an attribute of a waiting event, of an open frame, or of a finished call that
// waits.
type attribute struct{ key, value *sharedValue }

// sharedValue is a value of a batch, copied: the strings of a batch share memory, and an
// open frame may keep one of them for hours. A thousand attributes can share one value,
// which counts once.
type sharedValue struct {
	value callevent.Value
	// users is the number of keys and values of kept attributes that refer to it. records is
	// the part of them in finished calls that wait.
	users, records int
}

// batchValues are the values of the current batch.
type batchValues []*sharedValue

// set copies the values of the batch, if one of its events has attributes.
func (v *batchValues) set(b *callevent.Batch) {
	clear(*v)
	*v = (*v)[:0]
	if len(b.Attributes) == 0 {
		return
	}
	for _, value := range b.Values {
		*v = append(*v, &sharedValue{value: value.Clone()})
	}
}

// ofFirstEvent splits the attributes of the first event from the rest.
func (v batchValues) ofFirstEvent(all []callevent.Attribute) (own []attribute, rest []callevent.Attribute) {
	n := 1
	for n < len(all) && all[n].Event == all[0].Event {
		n++
	}
	own = make([]attribute, n)
	for i := range own {
		own[i] = attribute{key: v[all[i].Key], value: v[all[i].Value]}
	}
	return own, all[n:]
}

// attributeMemory counts the bytes that the kept attributes of a stream take: those of
// waiting events, of open frames, and of finished calls that wait.
type attributeMemory int

// charge counts attributes that are kept from now on.
func (m *attributeMemory) charge(attributes []attribute) {
	for _, a := range attributes {
		*m += attributeMemory(a.key.use() + a.value.use())
	}
}

// release counts that the attributes are not kept any more.
func (m *attributeMemory) release(attributes []attribute) {
	for _, a := range attributes {
		*m -= attributeMemory(a.key.drop() + a.value.drop())
	}
}

// use adds a user. It returns the bytes that are held because of it.
func (v *sharedValue) use() (bytes int) {
	v.users++
	if v.users > 1 {
		return 0
	}
	return sharedBytes + len(v.value.Str())
}

// drop removes a user. It returns the bytes that are not held any more.
func (v *sharedValue) drop() (bytes int) {
	v.users--
	if v.users > 0 {
		return 0
	}
	return sharedBytes + len(v.value.Str())
}

// record adds a finished call that waits. It returns the bytes that such calls hold because
// of it. The call is a user too.
func (v *sharedValue) record() (bytes int) {
	v.records++
	if v.records > 1 {
		return 0
	}
	return sharedBytes + len(v.value.Str())
}

// forget removes a finished call. It returns the bytes that such calls do not hold any more.
func (v *sharedValue) forget() (bytes int) {
	v.records--
	if v.records > 0 {
		return 0
	}
	return sharedBytes + len(v.value.Str())
}

// waitingAttributes are the attributes of waiting events, by sequence number.
type waitingAttributes struct {
	byNumber map[uint64][]attribute
	// most is the largest size of the map since it was made.
	most  int
	bytes *attributeMemory
}

// put keeps the attributes of an event.
func (w *waitingAttributes) put(sequence uint64, attributes []attribute) {
	w.byNumber[sequence] = attributes
	w.most = max(w.most, len(w.byNumber))
	*w.bytes += attributeMemory(len(attributes) * attributeBytes)
	w.bytes.charge(attributes)
}

// remove returns the attributes of an event that stops waiting.
func (w *waitingAttributes) remove(sequence uint64) []attribute {
	attributes := w.byNumber[sequence]
	delete(w.byNumber, sequence)
	*w.bytes -= attributeMemory(len(attributes) * attributeBytes)
	w.bytes.release(attributes)
	if len(w.byNumber) == 0 && w.most > keptAttributes {
		w.byNumber, w.most = map[uint64][]attribute{}, 0
	}
	return attributes
}

// tableBytes is about the memory of the map.
func (w *waitingAttributes) tableBytes() int { return w.most * waitingBytes }
