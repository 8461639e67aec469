package kubelet

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle"
)

// podStatus is what the kubelet reports about a pod that is being made or runs (generateAPIPodStatus).
func (k *kubelet) podStatus(ctx context.Context, p *corev1.Pod, run pod) (corev1.PodStatus, error) {
	s := *p.Status.DeepCopy()
	if s.StartTime == nil {
		s.StartTime = k.at(run.made)
	}
	s.Phase = corev1.PodPending
	for _, a := range k.lastAddresses() {
		if a.Type == corev1.NodeInternalIP {
			s.HostIP, s.HostIPs = a.Address, []corev1.HostIP{{IP: a.Address}}
		}
	}
	runs := !run.started.IsZero()
	s.PodIP, s.PodIPs = "", nil
	if runs {
		s.Phase = corev1.PodRunning
		s.PodIP = s.HostIP
		if !p.Spec.HostNetwork {
			var err error
			if s.PodIP, err = k.podIP(ctx, run.number); err != nil {
				return s, err
			}
		}
		s.PodIPs = []corev1.PodIP{{IP: s.PodIP}}
	}
	ready := corev1.ConditionFalse
	if runs {
		ready = corev1.ConditionTrue
	}
	k.setPodCondition(&s, corev1.PodReadyToStartContainers, ready)
	k.setPodCondition(&s, corev1.PodInitialized, corev1.ConditionTrue)
	k.setPodCondition(&s, corev1.PodReady, ready)
	k.setPodCondition(&s, corev1.ContainersReady, ready)
	s.ContainerStatuses = k.containerStatuses(p, run)
	return s, nil
}

// at is a time by the clock of the machine, in whole seconds as the API keeps it.
func (k *kubelet) at(t time.Time) *metav1.Time {
	skew := time.Until(k.Now()).Round(time.Second)
	m := metav1.NewTime(t.Add(skew).Truncate(time.Second))
	return &m
}

func (k *kubelet) setPodCondition(s *corev1.PodStatus, kind corev1.PodConditionType, status corev1.ConditionStatus) {
	c := corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: *k.at(time.Now())}
	if status == corev1.ConditionFalse && (kind == corev1.PodReady || kind == corev1.ContainersReady) {
		c.Reason, c.Message = "ContainersNotReady", "containers are not ready"
	}
	at := slices.IndexFunc(s.Conditions, func(old corev1.PodCondition) bool { return old.Type == kind })
	if at < 0 {
		s.Conditions = append(s.Conditions, c)
		return
	}
	if s.Conditions[at].Status == c.Status {
		c.LastTransitionTime = s.Conditions[at].LastTransitionTime
	}
	s.Conditions[at] = c
}

func (k *kubelet) containerStatuses(p *corev1.Pod, run pod) []corev1.ContainerStatus {
	runs := !run.started.IsZero()
	var all []corev1.ContainerStatus
	for _, c := range p.Spec.Containers {
		s := corev1.ContainerStatus{Name: c.Name, Image: c.Image, Ready: runs, Started: &runs, RestartCount: run.restarts}
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
		if runs {
			s.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: *k.at(run.started)}}
			s.ImageID = c.Image + "@" + string(bundle.Of([]byte(c.Image)))
			s.ContainerID = containerID(p, c)
		}
		if !run.ended.IsZero() {
			// What a boot ends has the exit code of a process that was killed.
			s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 255, Reason: "Unknown", FinishedAt: *k.at(run.ended)}
		}
		all = append(all, s)
	}
	return all
}

func containerID(p *corev1.Pod, c corev1.Container) string {
	return "containerd://" + string(bundle.Of([]byte(string(p.UID) + c.Name)))[len("sha256:"):]
}

// ended is the last status of a pod that was deleted.
func (k *kubelet) ended(p *corev1.Pod, run pod) corev1.PodStatus {
	s := *p.Status.DeepCopy()
	s.Phase = corev1.PodSucceeded
	if run.started.IsZero() {
		s.Phase = corev1.PodFailed
	}
	k.setPodCondition(&s, corev1.PodReady, corev1.ConditionFalse)
	k.setPodCondition(&s, corev1.ContainersReady, corev1.ConditionFalse)
	now := *k.at(time.Now())
	no := false
	for i := range s.ContainerStatuses {
		c := &s.ContainerStatuses[i]
		c.Ready, c.Started = false, &no
		done := &corev1.ContainerStateTerminated{Reason: "Completed", FinishedAt: now, ContainerID: c.ContainerID}
		if r := c.State.Running; r != nil {
			done.StartedAt = r.StartedAt
		}
		c.State = corev1.ContainerState{Terminated: done}
	}
	return s
}
