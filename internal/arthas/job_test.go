// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthas

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// testJob returns a job with the number 7, and a function that makes it accept a page.
func testJob(t *testing.T) (j *Job, page func(list string) *End) {
	c := &Client{}
	s := c.session("s", "c")
	j = &Job{session: s, number: 7, limit: 3}
	s.state, s.job = sessionRunning, j
	return j, func(list string) *End { return j.accept(results(t, list)).End }
}

const (
	echo      = `{"type":"command","jobId":7,"state":"SCHEDULED"}`
	ended     = `{"type":"status","jobId":7,"statusCode":0}`
	unhealthy = `{"type":"message","jobId":0,"message":"all consumers are unhealthy, current job was interrupted."}`
	watched   = `{"type":"watch","jobId":7}`
)

// deepStacks are results that end a page, because they count for 100 items.
func deepStacks() string {
	frames := strings.TrimSuffix(strings.Repeat(`{"className":"A"},`, 50), ",")
	return strings.TrimSuffix(strings.Repeat(`{"type":"stack","jobId":7,"stackTrace":[`+frames+`]},`, 2), ",")
}

func TestTheReasonOfAnEndMayComeInALaterPage(t *testing.T) {
	for name, full := range map[string]string{
		"a page of 20 results": strings.Repeat(watched+",", pageResults-2) + echo + "," + ended,
		"a page of 100 items":  deepStacks() + "," + echo + "," + ended,
	} {
		j, page := testJob(t)
		assert.Nil(t, page(full), name)
		assert.Equal(t, sessionRunning, j.session.state)
		assert.Equal(t, EndUnhealthy, page(unhealthy).Reason, name)
		assert.Equal(t, sessionReady, j.session.state)
	}
}

func TestTheReasonOfAnEarlierJobIsNotOfThisOne(t *testing.T) {
	_, page := testJob(t)
	assert.Nil(t, page(unhealthy+","+echo+","+watched+","+watched+","+watched))
	assert.Equal(t, EndFinished, page(ended).Reason)
}

func TestAJobOfAServerThatStopsEnds(t *testing.T) {
	for list, message := range map[string]string{
		`{"type":"shutdown","jobId":0,"graceful":true,"message":"bye"}`:                "bye",
		`{"type":"message","jobId":0,"message":"arthas server is going to shutdown."}`: "arthas server is going to shutdown.",
	} {
		_, page := testJob(t)
		assert.Equal(t, &End{Reason: EndServerStopped, Message: message}, page(echo+","+list))
	}
}

func TestASessionThatCloses(t *testing.T) {
	j, _ := testJob(t)
	j.session.closing = true
	j.session.lost(errors.New("not found"))
	assert.Equal(t, &End{Reason: EndInterrupted}, j.end, "the server answers a pull after it closed the session")
}

func TestAMalformedStatusEndsTheJob(t *testing.T) {
	_, page := testJob(t)
	assert.Nil(t, page(echo+`,{"type":"status","jobId":7,"statusCode":"x"}`), "a malformed result may count for many items")
	end := page("")
	assert.Equal(t, EndFailed, end.Reason)
	assert.Contains(t, end.Message, "expected a status code")
}

func TestMalformedResultsOfCallsCountForTheLimit(t *testing.T) {
	j, page := testJob(t)
	bad := `{"type":"watch","jobId":7,"cost":"x"}`
	page(echo + `,{"type":"enhancer","jobId":7,"success":1},` + bad)
	page(bad + "," + ended)
	assert.Equal(t, EndFinished, page("").Reason)
	assert.EqualValues(t, 1, j.session.loss.Results)
}

func TestReasonsHaveNames(t *testing.T) {
	assert.Equal(t, "unhealthy", EndUnhealthy.String())
	assert.Equal(t, "unknown", EndReason(99).String())
}
