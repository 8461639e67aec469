package simnode_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/internal/hostsim/simulation"
	"wmco/internal/test/simnode"
	"wmco/internal/test/simnode/cluster"
	"wmco/internal/test/simnode/kubelet"
	"wmco/internal/test/simnode/overlay"
	"wmco/payload"
)

// inMemory returns a machine in memory that is a Machine of the cluster. Its Node is removed with the test.
func inMemory(t testing.TB, name, address string) *simnode.Machine {
	t.Helper()
	return inMemoryWith(t, name, address, simnode.FastTimes())
}

func inMemoryWith(t testing.TB, name, address string, times simnode.Times) *simnode.Machine {
	t.Helper()
	m, err := simnode.New(simnode.Options{Facts: facts(name, address), Times: times, Log: logTo(t)})
	must(t, err)
	must(t, m.InstallPayload())
	admin := server.Config(t)
	must(t, cluster.AddMachine(t.Context(), admin, name, address))
	t.Cleanup(func() {
		must(t, m.Close())
		forget(t, name)
	})
	return m
}

// forget removes what a machine has left in the cluster.
func forget(t testing.TB, name string) {
	t.Helper()
	ctx, c := context.Background(), server.Client(t)
	machine := &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "machine.openshift.io/v1beta1", Kind: "Machine"}, ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-machine-api", Name: name},
	}
	must(t, client.IgnoreNotFound(c.Delete(ctx, machine)))
	must(t, client.IgnoreNotFound(c.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})))
	var list certificatesv1.CertificateSigningRequestList
	must(t, c.List(ctx, &list))
	for _, r := range list.Items {
		if strings.HasSuffix(parse(t, r).Subject.CommonName, ":"+name) {
			must(t, client.IgnoreNotFound(c.Delete(ctx, &r)))
		}
	}
}

func parse(t testing.TB, r certificatesv1.CertificateSigningRequest) *x509.CertificateRequest {
	t.Helper()
	block, _ := pem.Decode(r.Spec.Request)
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	must(t, err)
	return csr
}

func joiner(t testing.TB) cluster.Joiner {
	return cluster.Joiner{Admin: server.Config(t), Key: bundle.Key("a key for tests of simulated nodes")}
}

func join(t testing.TB, machines ...*simnode.Machine) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute+time.Duration(len(machines))*2*time.Second)
	defer stop()
	must(t, joiner(t).Join(ctx, machines...))
}

// request is what matters of a CertificateSigningRequest.
type request struct {
	Signer, User, CommonName string
	Usages                   []certificatesv1.KeyUsage
	Organization, DNS, IPs   []string
	Seconds                  int32
}

// publicKeys are those of the requests of a node.
func publicKeys(t *testing.T, c client.Client, node string) []any {
	t.Helper()
	var list certificatesv1.CertificateSigningRequestList
	must(t, c.List(t.Context(), &list))
	var all []any
	for _, r := range list.Items {
		csr := parse(t, r)
		if strings.HasSuffix(csr.Subject.CommonName, ":"+node) {
			all = append(all, csr.PublicKey)
		}
	}
	return all
}

// requests are those of a node, each kind once: a kubelet that is stopped while it waits for an answer asks again, with another key.
func requests(t *testing.T, c client.Client, node string) []request {
	t.Helper()
	var list certificatesv1.CertificateSigningRequestList
	must(t, c.List(t.Context(), &list))
	var all []request
	for _, r := range list.Items {
		csr := parse(t, r)
		must(t, csr.CheckSignature())
		x := request{Signer: r.Spec.SignerName, User: r.Spec.Username, CommonName: csr.Subject.CommonName, Usages: r.Spec.Usages, Organization: csr.Subject.Organization, DNS: csr.DNSNames}
		if s := r.Spec.ExpirationSeconds; s != nil {
			x.Seconds = *s
		}
		for _, ip := range csr.IPAddresses {
			x.IPs = append(x.IPs, ip.String())
		}
		if strings.HasSuffix(x.CommonName, ":"+node) {
			all = append(all, x)
		}
	}
	slices.SortFunc(all, func(a, b request) int { return strings.Compare(a.Signer, b.Signer) })
	return slices.CompactFunc(all, func(a, b request) bool { return reflect.DeepEqual(a, b) })
}

// TestCertificatesAreRequestedAsOnARealNode: each by its user, for its signer, with nothing else in it.
func TestCertificatesAreRequestedAsOnARealNode(t *testing.T) {
	var allowed atomic.Bool
	c := startClusterWith(t, func(string) bool { return allowed.Load() })
	m := inMemory(t, "win-csr", "10.0.7.1")
	_, err := joiner(t).Apply(t.Context(), m)
	must(t, err)
	client := certificatesv1.KubeAPIServerClientKubeletSignerName
	first := request{
		Signer: client, User: cluster.BootstrapUser, CommonName: "system:node:win-csr", Organization: []string{"system:nodes"},
		Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
	}
	eventually(t, "the first request", func() bool { return len(requests(t, c, "win-csr")) > 0 })
	if diff := cmp.Diff([]request{first}, requests(t, c, "win-csr"), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("before it is approved (-want +got):\n%s", diff)
	}
	if _, ok := getNode(t, c, "win-csr"); ok {
		t.Error("there is a Node without a certificate")
	}
	// The key waits on the host, for the operator to compare it with the request.
	pending, err := keyutil.ParsePrivateKeyPEM([]byte(m.Text(`C:\var\lib\kubelet\pki\kubelet-client.key.tmp`)))
	must(t, err)
	if !pending.(*ecdsa.PrivateKey).PublicKey.Equal(publicKeys(t, c, "win-csr")[0]) {
		t.Error("the key on the host is not that of the request")
	}

	allowed.Store(true)
	// The approver looks at a request when it changes.
	touch(t, c)
	join(t, m)
	serving := request{
		Signer: certificatesv1.KubeletServingSignerName, User: "system:node:win-csr", CommonName: "system:node:win-csr", Organization: []string{"system:nodes"},
		Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth}, DNS: []string{"win-csr"}, IPs: []string{"10.0.7.1"},
	}
	network := request{
		Signer: certificatesv1.KubeAPIServerClientSignerName, User: "system:node:win-csr", CommonName: "system:ovn-node:win-csr", Organization: []string{"system:ovn-nodes"},
		Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}, Seconds: 24 * 60 * 60,
	}
	if diff := cmp.Diff([]request{network, first, serving}, requests(t, c, "win-csr"), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("in the end (-want +got):\n%s", diff)
	}
	if text := m.Text(`C:\k\kubeconfig`); !strings.Contains(text, `client-certificate: C:\var\lib\kubelet\pki\kubelet-client-current.pem`) {
		t.Errorf("the kubeconfig does not name the certificate:\n%s", text)
	}
	if m.Text(`C:\var\lib\kubelet\pki\kubelet-client.key.tmp`) != "" {
		t.Error("the key is still where it waited for its certificate")
	}
	for _, path := range []string{`C:\var\lib\kubelet\pki\kubelet-client-current.pem`, `C:\var\lib\kubelet\pki\kubelet-server-current.pem`, `C:\k\cni\config\ovnkube-client-current.pem`} {
		eventually(t, path, func() bool {
			return strings.Contains(m.Text(path), "PRIVATE KEY") && strings.Contains(m.Text(path), "CERTIFICATE")
		})
		infos, err := m.Stat(t.Context(), []string{path})
		must(t, err)
		if infos[0].Access != bundle.AccessAdmins {
			t.Errorf("%s can be read by %s", path, infos[0].Access)
		}
	}
}

// TestTheNodeIsThatOfAWindowsKubelet compares field by field.
func TestTheNodeIsThatOfAWindowsKubelet(t *testing.T) {
	c := startCluster(t)
	m := inMemory(t, "win-node", "10.0.7.2")
	join(t, m)
	n, _ := getNode(t, c, "win-node")
	for key, want := range map[string]string{
		"kubernetes.io/hostname": "win-node", "kubernetes.io/os": "windows", "kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "windows", "beta.kubernetes.io/arch": "amd64",
		"node.kubernetes.io/windows-build": "10.0.20348", "node.openshift.io/os_id": "Windows",
	} {
		if got := n.Labels[key]; got != want {
			t.Errorf("label %s is %q, want %q", key, got, want)
		}
	}
	if len(n.Labels) != 7 {
		t.Errorf("labels %v", n.Labels)
	}
	if n.Annotations["volumes.kubernetes.io/controller-managed-attach-detach"] != "true" || n.Annotations[overlay.SubnetAnnotation] == "" || n.Annotations[overlay.GatewayAnnotation] == "" {
		t.Errorf("annotations %v", n.Annotations)
	}
	if !slices.ContainsFunc(n.Spec.Taints, func(x corev1.Taint) bool { return x.ToString() == "os=Windows:NoSchedule" }) {
		t.Errorf("taints %v", n.Spec.Taints)
	}
	want := corev1.NodeStatus{
		Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.7.2"}, {Type: corev1.NodeHostName, Address: "win-node"}},
		NodeInfo: corev1.NodeSystemInfo{
			MachineID: "win-node", KernelVersion: "10.0.20348.1000", OSImage: "Windows Server 2022 Datacenter", ContainerRuntimeVersion: "containerd://2.4.2", KubeletVersion: payload.Find("kubelet-1.36").Version,
			OperatingSystem: "windows", Architecture: "amd64",
		},
	}
	want.DaemonEndpoints.KubeletEndpoint.Port = 10250
	got := corev1.NodeStatus{Addresses: n.Status.Addresses, NodeInfo: n.Status.NodeInfo, DaemonEndpoints: n.Status.DaemonEndpoints}
	if got.NodeInfo.SystemUUID == "" || got.NodeInfo.BootID == "" {
		t.Errorf("system %q, boot %q", got.NodeInfo.SystemUUID, got.NodeInfo.BootID)
	}
	got.NodeInfo.SystemUUID, got.NodeInfo.BootID = "", ""
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	quantities := map[string]string{}
	for what, list := range map[string]corev1.ResourceList{"has": n.Status.Capacity, "gives": n.Status.Allocatable} {
		for name, q := range list {
			quantities[what+" "+string(name)] = q.String()
		}
	}
	// Of 4 CPUs, 16Gi and 120Gi, systemReserved and evictionHard of the bundle keep 500m, 2Gi and 500Mi, 1Gi and a tenth of the disk.
	if diff := cmp.Diff(map[string]string{
		"has cpu": "4", "has memory": "16Gi", "has ephemeral-storage": "120Gi", "has pods": "250",
		"gives cpu": "3500m", "gives memory": "13836Mi", "gives ephemeral-storage": "107Gi", "gives pods": "250",
	}, quantities); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
	for kind, status := range map[corev1.NodeConditionType]corev1.ConditionStatus{
		corev1.NodeReady: "True", corev1.NodeMemoryPressure: "False", corev1.NodeDiskPressure: "False", corev1.NodePIDPressure: "False",
	} {
		if got := condition(n, kind); got.Status != status || got.LastHeartbeatTime.IsZero() || got.LastTransitionTime.IsZero() {
			t.Errorf("condition %+v", got)
		}
	}
	checkLease(t, c, n)
}

func checkLease(t *testing.T, c client.Client, n *corev1.Node) {
	t.Helper()
	key := client.ObjectKey{Namespace: corev1.NamespaceNodeLease, Name: n.Name}
	var lease coordinationv1.Lease
	must(t, c.Get(t.Context(), key, &lease))
	if *lease.Spec.HolderIdentity != n.Name || *lease.Spec.LeaseDurationSeconds != 40 || len(lease.OwnerReferences) != 1 || lease.OwnerReferences[0].UID != n.UID {
		t.Errorf("lease %+v of %+v", lease.Spec, lease.OwnerReferences)
	}
	first := lease.Spec.RenewTime.Time
	eventually(t, "a renewal", func() bool {
		must(t, c.Get(t.Context(), key, &lease))
		return lease.Spec.RenewTime.After(first)
	})
}

// newPod is a pod that runs on one node.
func newPod(node, name string, annotations map[string]string) *corev1.Pod {
	grace := int64(30)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name, Annotations: annotations},
		Spec: corev1.PodSpec{
			NodeName: node, TerminationGracePeriodSeconds: &grace, OS: &corev1.PodOS{Name: corev1.Windows},
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, Containers: []corev1.Container{{Name: "c", Image: "example.com/app:1"}},
		},
	}
}

// TestPodsRunAndEnd: they become Ready, end within their grace period, and survive the kubelet.
func TestPodsRunAndEnd(t *testing.T) {
	c := startCluster(t)
	m := inMemory(t, "win-pods", "10.0.7.3")
	join(t, m)
	get := func(name string) (*corev1.Pod, bool) {
		var p corev1.Pod
		err := c.Get(t.Context(), client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: name}, &p)
		must(t, client.IgnoreNotFound(err))
		return &p, err == nil
	}
	for name, annotations := range map[string]map[string]string{"ends": nil, "stubborn": {kubelet.EndsAfterAnnotation: "1h"}, "stays": nil} {
		must(t, c.Create(t.Context(), newPod("win-pods", name, annotations)))
		eventually(t, name+" to be Ready", func() bool {
			p, _ := get(name)
			return p.Status.Phase == corev1.PodRunning && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			})
		})
	}
	p, _ := get("stays")
	if !strings.HasPrefix(p.Status.PodIP, "10.132.") || p.Status.HostIP != "10.0.7.3" || p.Status.ContainerStatuses[0].State.Running == nil || p.Status.QOSClass != corev1.PodQOSBestEffort {
		t.Errorf("%+v", p.Status)
	}
	must(t, m.RestartService(t.Context(), "kubelet"))
	if m.Pods() != 3 {
		t.Errorf("%d pods run without a kubelet", m.Pods())
	}

	// One ends alone, one is killed at the end of the shorter grace period that was asked for.
	must(t, c.Delete(t.Context(), newPod("", "ends", nil)))
	begun := time.Now()
	must(t, c.Delete(t.Context(), newPod("", "stubborn", nil), client.GracePeriodSeconds(2)))
	eventually(t, "the first to end", func() bool {
		_, ok := get("ends")
		return !ok
	})
	eventually(t, "the other to be killed", func() bool {
		_, ok := get("stubborn")
		return !ok
	})
	if took := time.Since(begun); took < 2*time.Second {
		t.Errorf("it was killed after %s, before its grace period", took)
	}
	if p, ok := get("stays"); !ok || p.Status.ContainerStatuses[0].RestartCount != 0 || m.Pods() != 1 {
		t.Errorf("%v, %d pods run", ok, m.Pods())
	}
	must(t, c.Delete(t.Context(), newPod("", "stays", nil), client.GracePeriodSeconds(0)))
	eventually(t, "the last to be gone", func() bool { return m.Pods() == 0 })
}

// TestABoot: services, networks and pods come back, the Node reports another boot.
func TestABoot(t *testing.T) {
	c := startCluster(t)
	m := inMemory(t, "win-boot", "10.0.7.4")
	join(t, m)
	must(t, c.Create(t.Context(), newPod("win-boot", "over-boots", nil)))
	t.Cleanup(func() {
		must(t, c.Delete(context.Background(), newPod("", "over-boots", nil), client.GracePeriodSeconds(0)))
	})
	eventually(t, "the pod", func() bool { return m.Pods() == 1 })
	before, _ := getNode(t, c, "win-boot")
	starts := m.Starts()
	must(t, m.Reboot())
	if m.Boots() != 2 {
		t.Errorf("%d boots", m.Boots())
	}
	eventually(t, "another boot ID of a Ready Node", func() bool {
		n, _ := getNode(t, c, "win-boot")
		return n.Status.NodeInfo.BootID != before.Status.NodeInfo.BootID && ready(n)
	})
	eventually(t, "the pod to run again", func() bool {
		var p corev1.Pod
		must(t, c.Get(t.Context(), client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "over-boots"}, &p))
		s := p.Status.ContainerStatuses
		return len(s) == 1 && s[0].RestartCount == 1 && s[0].Ready
	})
	eventually(t, "the networks", func() bool {
		f, err := m.Facts(t.Context())
		must(t, err)
		return len(f.Networks) == 2
	})
	for name, n := range m.Starts() {
		if n != starts[name]+1 {
			t.Errorf("%s was started %d times, %d before the boot", name, n, starts[name])
		}
	}
	if n, _ := getNode(t, c, "win-boot"); n.UID != before.UID {
		t.Error("it is another Node")
	}
}

// TestAConfigurationThatTheKubeletRefuses stops it: the engine rolls back, and by hand it stays away until it is put right.
func TestAConfigurationThatTheKubeletRefuses(t *testing.T) {
	c := startCluster(t)
	m := inMemory(t, "win-refuse", "10.0.7.5")
	join(t, m)
	const path = `C:\k\kubelet.conf`
	good := m.Text(path)
	settings := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-windows-machine-config-operator", Name: "windows-machine-config"},
		Data:       map[string]string{"config.yaml": "kubelet: {cpuManagerPolicy: static, kubeReserved: {cpu: '64'}, featureGates: {WindowsCPUAndMemoryAffinity: true}}\n"},
	}
	must(t, c.Create(t.Context(), settings))
	_, err := joiner(t).Apply(t.Context(), m)
	must(t, c.Delete(t.Context(), settings))
	var back *applier.RolledBackError
	if !errors.As(err, &back) {
		t.Fatalf("applied with %v", err)
	}
	if m.Text(path) != good || m.Status("kubelet") != plan.ServiceRunning {
		t.Errorf("the kubelet is %s", m.Status("kubelet"))
	}

	must(t, m.WriteFile(t.Context(), path, bundle.AccessUsers, []byte(strings.Replace(good, "maxPods: 250", "maxPods: -1", 1))))
	// The agent would repair the file.
	must(t, m.StopService(t.Context(), bundle.AgentService))
	starts := m.Starts()["kubelet"]
	must(t, m.RestartService(t.Context(), "kubelet"))
	eventually(t, "a second restart", func() bool { return m.Starts()["kubelet"] > starts+2 })
	eventually(t, "the Node to be lost", func() bool {
		n, _ := getNode(t, c, "win-refuse")
		return condition(n, corev1.NodeReady).Status == corev1.ConditionUnknown
	})
	must(t, m.WriteFile(t.Context(), path, bundle.AccessUsers, []byte(good)))
	eventually(t, "the Node to be Ready", func() bool {
		n, _ := getNode(t, c, "win-refuse")
		return ready(n)
	})
}

// TestADeletedNodeComesBackWithTheKubelet and not before.
func TestADeletedNodeComesBackWithTheKubelet(t *testing.T) {
	c := startCluster(t)
	m := inMemory(t, "win-gone", "10.0.7.6")
	join(t, m)
	n, _ := getNode(t, c, "win-gone")
	must(t, c.Delete(t.Context(), n))
	// Some heartbeats later.
	eventually(t, "the Lease to go with its owner", func() bool {
		var lease coordinationv1.Lease
		err := c.Get(t.Context(), client.ObjectKey{Namespace: corev1.NamespaceNodeLease, Name: "win-gone"}, &lease)
		return client.IgnoreNotFound(err) == nil && err != nil
	})
	if _, ok := getNode(t, c, "win-gone"); ok {
		t.Error("the Node was registered again by a kubelet that runs")
	}
	must(t, m.Reboot())
	eventually(t, "the Node", func() bool {
		again, ok := getNode(t, c, "win-gone")
		return ok && again.UID != n.UID && ready(again)
	})
}

// TestPowerAndClock: a machine that is off is lost; a wrong clock is not in the way.
func TestPowerAndClock(t *testing.T) {
	c := startCluster(t)
	m := inMemory(t, "win-power", "10.0.7.7")
	join(t, m)
	m.SetClock(-365 * 24 * time.Hour)
	eventually(t, "a heartbeat of another year", func() bool {
		var lease coordinationv1.Lease
		must(t, c.Get(t.Context(), client.ObjectKey{Namespace: corev1.NamespaceNodeLease, Name: "win-power"}, &lease))
		return time.Since(lease.Spec.RenewTime.Time) > 300*24*time.Hour
	})
	if n, _ := getNode(t, c, "win-power"); !ready(n) {
		t.Error("the Node is not Ready")
	}
	m.PowerOff()
	eventually(t, "the Node to be lost", func() bool {
		n, _ := getNode(t, c, "win-power")
		return condition(n, corev1.NodeReady).Status == corev1.ConditionUnknown
	})
	m.SetClock(0)
	must(t, m.PowerOn())
	eventually(t, "the Node to be Ready", func() bool {
		n, _ := getNode(t, c, "win-power")
		return ready(n)
	})
	must(t, m.Behave(func(s *simulation.Script) {
		s.Services["kubelet"] = simulation.Behaviour{Start: simulation.StartExits}
	}))
	must(t, m.Reboot())
	if got := m.Status("kubelet"); got != plan.ServiceStopped {
		t.Errorf("the kubelet is %s", got)
	}
}

// touch changes all requests.
func touch(t *testing.T, c client.Client) {
	t.Helper()
	var list certificatesv1.CertificateSigningRequestList
	must(t, c.List(t.Context(), &list))
	for _, r := range list.Items {
		before := r.DeepCopy()
		r.Annotations = map[string]string{"touched": "true"}
		must(t, client.IgnoreNotFound(c.Patch(t.Context(), &r, client.MergeFrom(before))))
	}
}
