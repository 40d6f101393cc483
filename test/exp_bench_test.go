package test
import ("testing";"os";"github.com/callbraid/callbraid/internal/bytefrogagent/replay";"github.com/callbraid/callbraid/test/testbed")
func BenchmarkExp(b *testing.B) {
	for b.Loop() {
		endpoint := testbed.Address(b)
		c := testbed.Start(b, withOrdinaryTelemetry(pipeline(endpoint, os.Getenv("EXP_RECV"), os.Getenv("EXP_PAIR"), "nop: {}")))
		ended := 0.0
		play := func(builds int) {
			agent{endpoint: endpoint, capture: "maven", replay: replay.Options{Repeat: builds}}.complete(b)
			ended++
			c.AwaitMetric(b, ended, runsEnded)
		}
		play(5)
		before := c.CPUSoFar(b)
		play(25)
		used := c.CPUSoFar(b) - before
		p := c.PeakMemory(b)
		c.Stop(b)
		b.ReportMetric(25*mavenEvents/used.Seconds()/1e6, "Mevents/cpu-s")
		b.ReportMetric(float64(p)/(1<<20), "peak-MiB")
	}
}
