package simnode_test

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/internal/hostsim/simulation"
	"wmco/internal/test/simnode"
	"wmco/internal/test/simnode/cluster"
)

// TestTheAgentRepairs: what it writes and restarts is counted, and nothing else.
func TestTheAgentRepairs(t *testing.T) {
	startCluster(t)
	m := inMemory(t, "win-agent", "10.0.8.1")
	join(t, m)
	const path = `C:\k\kubelet.conf`
	good := m.Text(path)
	must(t, m.WriteFile(t.Context(), path, bundle.AccessUsers, []byte(good+"# by hand\n")))
	starts := m.Starts()
	m.ForgetOperations()
	must(t, m.RestartService(t.Context(), bundle.AgentService)) // it compares when it starts
	eventually(t, "the repair", func() bool {
		return m.Text(path) == good && m.Starts()["kube-proxy"] > starts["kube-proxy"] && m.Status("kube-proxy") == plan.ServiceRunning
	})
	var written, started []string
	for _, op := range m.Operations() {
		switch op.Verb { //nolint:exhaustive // these are asked for
		case simulation.VerbWrite, simulation.VerbLink:
			written = append(written, op.Target)
		case simulation.VerbStart:
			started = append(started, op.Target)
		}
	}
	if !slices.Equal(written, []string{path}) {
		t.Errorf("written %q", written)
	}
	// The test has started the agent.
	if want := []string{bundle.AgentService, "kubelet", "hybrid-overlay-node", "kube-proxy"}; !slices.Equal(started, want) {
		t.Errorf("started %q, want %q", started, want)
	}
	if n := m.Starts()["containerd"]; n != starts["containerd"] {
		t.Errorf("containerd was started %d times", n)
	}
}

// TestTheOverlayWaitsForItsCertificate: it exits when it is not approved, and the service control manager starts it again.
func TestTheOverlayWaitsForItsCertificate(t *testing.T) {
	loadCluster(t)
	approveKubelets(t, nil)
	times := simnode.FastTimes()
	times.Network = time.Second
	m := inMemoryWith(t, "win-overlay", "10.0.8.2", times)
	eventually(t, "three attempts", func() bool {
		_, err := joiner(t).Apply(t.Context(), m)
		must(t, err)
		return m.Starts()["hybrid-overlay-node"] >= 3
	})
	startNetwork(t)
	join(t, m)
}

// TestAFullDiskKeepsTheKubeletFromAsking: it cannot keep the key, so it exits, until there is space.
func TestAFullDiskKeepsTheKubeletFromAsking(t *testing.T) {
	c := startCluster(t)
	m := inMemory(t, "win-full", "10.0.8.3")
	must(t, m.Behave(func(s *simulation.Script) { s.Full = []string{`C:\var\lib\kubelet`} }))
	_, err := joiner(t).Apply(t.Context(), m)
	var back *applier.RolledBackError
	if err != nil && !errors.As(err, &back) { // whether the engine sees the service run in between is a matter of moments
		t.Fatal(err)
	}
	if list := requests(t, c, "win-full"); len(list) > 0 {
		t.Errorf("requested without a key that is kept: %+v", list)
	}
	must(t, m.Behave(func(s *simulation.Script) { s.Full = nil }))
	join(t, m)
}

// TestAMachineInAFolderIsOpenedAgain with everything that it was.
func TestAMachineInAFolderIsOpenedAgain(t *testing.T) {
	c := startCluster(t)
	folder := t.TempDir()
	o := simnode.Options{Facts: facts("win-folder", "10.0.8.4"), Folder: folder, Times: simnode.FastTimes(), Log: logTo(t)}
	m, err := simnode.New(o)
	must(t, err)
	must(t, m.InstallPayload())
	must(t, cluster.AddMachine(t.Context(), server.Config(t), "win-folder", "10.0.8.4"))
	t.Cleanup(func() { forget(t, "win-folder") })
	join(t, m)
	before, _ := getNode(t, c, "win-folder")
	must(t, m.Close())
	m, err = simnode.New(simnode.Options{Folder: folder, Times: simnode.FastTimes(), Log: logTo(t)})
	must(t, err)
	t.Cleanup(func() { must(t, m.Close()) })
	if m.Name() != "win-folder" || m.Status("kubelet") != plan.ServiceRunning {
		t.Errorf("%s, its kubelet is %s", m.Name(), m.Status("kubelet"))
	}
	eventually(t, "a heartbeat", func() bool {
		n, _ := getNode(t, c, "win-folder")
		return condition(n, corev1.NodeReady).LastHeartbeatTime.After(condition(before, corev1.NodeReady).LastHeartbeatTime.Time)
	})
}

// BenchmarkIdleMachines reports what a joined machine in memory costs in this process: FLEET of them, 100 if it is not set.
func BenchmarkIdleMachines(b *testing.B) {
	startCluster(b)
	count, err := strconv.Atoi(os.Getenv("FLEET"))
	if err != nil {
		count = 100
	}
	for b.Loop() {
		goroutines, memory := runtime.NumGoroutine(), used()
		begun := time.Now()
		var all []*simnode.Machine
		for i := range count {
			name := "fleet-" + strconv.Itoa(i)
			all = append(all, inMemory(b, name, "10.1."+strconv.Itoa(i/250)+"."+strconv.Itoa(i%250+1)))
		}
		join(b, all...)
		b.ReportMetric(time.Since(begun).Seconds()/float64(count), "s-to-join/machine")
		b.ReportMetric(float64(used()-memory)/float64(count)/1024, "KiB/machine")
		b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/float64(count), "goroutines/machine")
	}
}

// used is the memory in use after a collection, with the stacks.
func used() uint64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc + s.StackInuse
}
