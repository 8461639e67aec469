package olmtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// linuxNode is the node for all Pods.
const linuxNode = "linux-0"

// createNode makes a node that is Ready. Nothing else is ever heard of it. Linux nodes are of the control plane.
func (s *station) createNode(ctx context.Context, name, system string) error {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/os": system, "kubernetes.io/hostname": name}}}
	if system == "linux" {
		n.Labels["node-role.kubernetes.io/control-plane"] = ""
	}
	if err := s.Create(ctx, n); err != nil {
		return err
	}
	before := n.DeepCopy()
	n.Status.Capacity = corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("32Gi"), "pods": resource.MustParse("110")}
	n.Status.Allocatable = n.Status.Capacity
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}}
	return s.Status().Patch(ctx, n, client.MergeFrom(before))
}

// runPods makes the Pods of the node run, and end when they are deleted, until the context ends.
func (s *station) runPods(ctx context.Context) {
	for ctx.Err() == nil {
		var pods corev1.PodList
		if err := s.List(ctx, &pods); err == nil {
			for i := range pods.Items {
				s.runPod(ctx, &pods.Items[i])
			}
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func (s *station) runPod(ctx context.Context, p *corev1.Pod) {
	switch {
	case p.DeletionTimestamp != nil:
		_ = s.Delete(ctx, p, client.GracePeriodSeconds(0))
	case p.Spec.NodeName != "" && p.Status.Phase != corev1.PodRunning:
		before := p.DeepCopy()
		p.Status.Phase = corev1.PodRunning
		p.Status.StartTime = new(metav1.Now())
		p.Status.Conditions = nil
		for _, c := range []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady, corev1.PodInitialized, corev1.PodScheduled} {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: c, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()})
		}
		_ = s.Status().Patch(ctx, p, client.MergeFrom(before))
	}
}

// runJobs does what the Pods of OLM's Jobs would do with the files of the bundle's image, until the context ends.
func (s *station) runJobs(ctx context.Context) {
	for ctx.Err() == nil {
		var jobs batchv1.JobList
		if err := s.List(ctx, &jobs); err == nil {
			for i := range jobs.Items {
				if j := &jobs.Items[i]; j.DeletionTimestamp == nil && len(j.Status.Conditions) == 0 {
					if err := s.runJob(ctx, j); err != nil && ctx.Err() == nil {
						s.report(fmt.Errorf("job %s: %w", j.Name, err))
					}
				}
			}
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// runJob runs the Job's own command with its environment and the token of its ServiceAccount, where the bundle's files are.
func (s *station) runJob(ctx context.Context, j *batchv1.Job) error {
	c := j.Spec.Template.Spec.Containers[0]
	words := append(c.Command, c.Args...)
	env := os.Environ()
	bundle := ""
	for _, e := range c.Env {
		env = append(env, e.Name+"="+e.Value)
		if e.Name == "CONTAINER_IMAGE" {
			bundle = s.bundles[e.Value]
		}
	}
	if bundle == "" || len(words) == 0 || words[0] != "opm" {
		return fmt.Errorf("unknown image or command: %q %v", words, c.Env)
	}
	for i, w := range words {
		if w == "/bundle/" {
			words[i] = bundle + "/"
		}
	}
	config, err := s.tokenFile(ctx, j.Namespace, j.Spec.Template.Spec.ServiceAccountName)
	if err != nil {
		return err
	}
	run := exec.CommandContext(ctx, filepath.Join(s.programs, words[0]), words[1:]...)
	run.Env = append(env, "KUBECONFIG="+config)
	if out, err := run.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(words, " "), err, out)
	}
	s.unpacked.Add(1)
	before, now := j.DeepCopy(), new(metav1.Now())
	j.Status.StartTime, j.Status.CompletionTime, j.Status.Succeeded = now, now, 1
	for _, t := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: t, Status: corev1.ConditionTrue, Reason: "CompletionsReached", LastTransitionTime: *now})
	}
	return s.Status().Patch(ctx, j, client.MergeFrom(before))
}

// tokenFile returns a kubeconfig with a token of a ServiceAccount.
func (s *station) tokenFile(ctx context.Context, namespace, account string) (string, error) {
	request := &authenticationv1.TokenRequest{}
	if err := s.SubResource("token").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}, request); err != nil {
		return "", fmt.Errorf("asking for a token of %s: %w", account, err)
	}
	config := api.NewConfig()
	config.Clusters["test"] = &api.Cluster{Server: s.config.Host, CertificateAuthorityData: s.config.CAData}
	config.AuthInfos["test"] = &api.AuthInfo{Token: request.Status.Token}
	config.Contexts["test"] = &api.Context{Cluster: "test", AuthInfo: "test"}
	config.CurrentContext = "test"
	file := filepath.Join(s.folder, fmt.Sprintf("kubeconfig-%s-%d", account, time.Now().UnixNano()))
	return file, clientcmd.WriteToFile(*config, file)
}
