package golden

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"

	"wmco/payload"
)

// TestTheDeploymentOfTheOKDPage: it decodes strictly, and tolerates the taint that kubelets register with.
func TestTheDeploymentOfTheOKDPage(t *testing.T) {
	page, err := os.ReadFile("../docs/okd.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatal("no YAML")
	}
	var d appsv1.Deployment
	if err := yaml.UnmarshalStrict(block[1], &d); err != nil {
		t.Fatal(err)
	}
	kubelet := renderNodes(t, filepath.Join("cases", "none"))[0].tree["C/k/kubelet.conf"]
	var config kubeletv1beta1.KubeletConfiguration
	if err := yaml.Unmarshal(kubelet, &config); err != nil || len(config.RegisterWithTaints) != 1 {
		t.Fatalf("%v, %v", config.RegisterWithTaints, err)
	}
	taint, pod := config.RegisterWithTaints[0], d.Spec.Template
	want := []corev1.Toleration{{Key: taint.Key, Operator: corev1.TolerationOpEqual, Value: taint.Value, Effect: taint.Effect}}
	if !slices.Equal(pod.Spec.Tolerations, want) || pod.Labels["app"] != d.Spec.Selector.MatchLabels["app"] {
		t.Errorf("%+v", pod)
	}
	all := payload.ClusterVersions()
	if want := "OpenShift " + all[0].Cluster + " to " + all[len(all)-1].Cluster; !strings.Contains(string(page), want) {
		t.Errorf("the page does not say %q", want)
	}
}
