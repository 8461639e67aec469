package metrics

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"wmco/bundle/published"
	"wmco/controller/status"
	"wmco/render"
)

// Counters count events that no object of the cluster has. They begin at zero with the process, as Prometheus expects of
// counters.
type Counters struct {
	// Joined is how long the Node of a host was there before the host had joined, by the host's backing.
	Joined *prometheus.HistogramVec
	// MachineJoined is how long a Machine was there before its host had joined.
	MachineJoined prometheus.Histogram
	// JoinFailures are attempts to bring a host further that failed, by reason.
	JoinFailures *prometheus.CounterVec
	// Published is the number of bytes of layers that were written for nodes.
	Published prometheus.Counter
	// held are nodes that an urgent input cannot reach, expires when their CA does.
	held, expires  *prometheus.GaugeVec
	warnings, keys *prometheus.GaugeVec
	ssh            []prometheus.Collector
	build          prometheus.Gauge
}

// Known are the label values that an operator knows from the start. Backings of hosts and reasons of failures are served before
// they happen: otherwise Prometheus sees no increase where the first one does.
type Known struct {
	Version           string
	Backings, Reasons []string
	// Traffic returns how many bytes were sent and received over SSH; nil is none.
	Traffic func() (sent, received int64)
	// Logins returns how often hosts were logged in to over SSH; nil is none.
	Logins func() int64
}

// NewCounters returns the counters of an operator.
func NewCounters(k Known) *Counters {
	// From half a minute to two hours: the time after which a cluster's approver accepts no certificate of a new
	// Machine.
	buckets := []float64{30, 60, 120, 180, 300, 450, 600, 900, 1200, 1800, 3600, 7200}
	c := &Counters{
		Joined: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "wmco_join_duration_seconds",
			Help:    "How long hosts took from the registration of their Node until they had joined.",
			Buckets: buckets,
		}, []string{labelBacking}),
		MachineJoined: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "wmco_machine_join_duration_seconds",
			Help:    "How long hosts of Machines took from the creation of the Machine until they had joined.",
			Buckets: buckets,
		}),
		JoinFailures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "wmco_join_failures_total", Help: "Number of attempts to join a host that failed. They are repeated.",
		}, []string{labelReason}),
		Published: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "wmco_published_bytes_total",
			Help: "Number of bytes written to the API server for nodes: packed layers in Secrets.",
		}),
		held: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "wmco_urgent_input_held_nodes",
			Help: "Number of Windows nodes that a CA or the pull secret, which must not wait for a rollout, cannot reach.",
		}, []string{labelInput}),
		expires: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "wmco_urgent_input_expiry_timestamp_seconds",
			Help: "When the first CA of these nodes expires. 0 where no CA is held.",
		}, []string{labelInput}),
		warnings: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "wmco_input_warnings", Help: "Number of findings about the inputs that are warnings, by reason (docs/reasons.md).",
		}, []string{labelReason}),
		keys: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "wmco_login_key_nodes", Help: "Number of Windows nodes by the key of the operator that their " +
				"hosts are known to accept: current, older, or unknown.",
		}, []string{labelKey}),
		build: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "wmco_build_info", Help: "1, with the version of the operator.",
			ConstLabels: prometheus.Labels{labelVersion: k.Version},
		}),
	}
	c.build.Set(1)
	c.SetWarnings(nil)
	c.ssh = trafficCounters(k.Traffic, k.Logins)
	for _, backing := range k.Backings {
		c.Joined.WithLabelValues(backing)
	}
	for _, input := range render.UrgentNames() {
		c.held.WithLabelValues(string(input))
		c.expires.WithLabelValues(string(input))
	}
	for _, reason := range k.Reasons {
		c.JoinFailures.WithLabelValues(reason)
	}
	return c
}

// trafficCounters returns the counters of what goes over SSH.
func trafficCounters(read func() (sent, received int64), logins func() int64) []prometheus.Collector {
	if read == nil {
		read = func() (int64, int64) { return 0, 0 }
	}
	if logins == nil {
		logins = func() int64 { return 0 }
	}
	counter := func(direction string, value func() int64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "wmco_ssh_bytes_total", Help: "Number of bytes sent to hosts and received from them over SSH, as on the wire.",
			ConstLabels: prometheus.Labels{labelDirection: direction},
		}, func() float64 { return float64(value()) })
	}
	return []prometheus.Collector{
		counter("sent", func() int64 { sent, _ := read(); return sent }),
		counter("received", func() int64 { _, received := read(); return received }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "wmco_ssh_logins_total", Help: "Number of logins to hosts over SSH.",
		}, func() float64 { return float64(logins()) }),
	}
}

// CountNode notes that the host of a Node has joined. It and the methods below may be called on nil, which counts
// nothing.
func (c *Counters) CountNode(backing string, took time.Duration) {
	if c != nil {
		c.Joined.WithLabelValues(backing).Observe(took.Seconds())
	}
}

// CountMachine notes that the host of a Machine has joined.
func (c *Counters) CountMachine(took time.Duration) {
	if c != nil {
		c.MachineJoined.Observe(took.Seconds())
	}
}

// CountFailure notes a failed attempt to bring a host further.
func (c *Counters) CountFailure(reason string) {
	if c != nil {
		c.JoinFailures.WithLabelValues(reason).Inc()
	}
}

// AddPublished counts bytes that were written for nodes.
func (c *Counters) AddPublished(bytes int) {
	if c != nil {
		c.Published.Add(float64(bytes))
	}
}

// SetUrgentHeld notes the urgent inputs that cannot reach nodes, by name. What is not among them reaches all.
func (c *Counters) SetUrgentHeld(held map[string]status.UrgentHeld) {
	if c == nil {
		return
	}
	for _, input := range render.UrgentNames() {
		u := held[string(input)]
		c.held.WithLabelValues(string(input)).Set(float64(u.Nodes))
		expires := 0.0
		if !u.Expires.IsZero() {
			expires = float64(u.Expires.Unix())
		}
		c.expires.WithLabelValues(string(input)).Set(expires)
	}
}

// SetWarnings notes the findings about the inputs that are warnings: their number, by reason. One that holds a change
// is always served.
func (c *Counters) SetWarnings(found map[string]int) {
	if c == nil {
		return
	}
	c.warnings.Reset()
	c.warnings.WithLabelValues(string(published.InputUnreachableImages))
	for reason, n := range found {
		c.warnings.WithLabelValues(reason).Set(float64(n))
	}
}

// SetLoginKeys notes how many nodes accept which key of the operator, by current, older and unknown. Nothing is served
// before it is called.
func (c *Counters) SetLoginKeys(nodes map[string]int) {
	if c == nil {
		return
	}
	for _, state := range []string{"current", "older", "unknown"} {
		c.keys.WithLabelValues(state).Set(float64(nodes[state]))
	}
}

func (c *Counters) allCollectors() []prometheus.Collector {
	return append(c.ssh, c.Joined, c.MachineJoined, c.JoinFailures, c.Published, c.held, c.expires, c.warnings,
		c.keys, c.build)
}

// Registration has a registry serve the metrics of an operator while that runs. It is a Runnable of its manager.
type Registration struct {
	Registry  prometheus.Registerer
	Collector *Collector
	Counters  *Counters
}

// Start implements manager.Runnable.
func (r *Registration) Start(ctx context.Context) error {
	var mine []prometheus.Collector
	for _, c := range append(r.Counters.allCollectors(), r.Collector) {
		switch err := r.Registry.Register(c); {
		case err == nil:
			mine = append(mine, c)
		case !errors.As(err, new(prometheus.AlreadyRegisteredError)):
			// tests run several operators in a process: the first one is served
			return err
		}
	}
	<-ctx.Done()
	for _, c := range mine {
		r.Registry.Unregister(c)
	}
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: who waits to be the leader serves metrics too.
func (*Registration) NeedLeaderElection() bool { return false }
