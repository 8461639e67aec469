package kubelet

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Containers are the pods that the container runtime of a machine runs. They outlive the kubelet, not the machine.
type Containers struct {
	mu   sync.Mutex
	pods map[types.UID]*pod
	// made counts pods, for their addresses.
	made int
}

// pod is what runs for a Pod.
type pod struct {
	number int
	// made is when its sandbox was made, started when its containers run, stopping when they were asked to end; zero
	// before.
	made, started, stopping time.Time
	// restarts is how often its containers were started again, after boots.
	restarts int32
	// waits reports whether it was made again and has not started.
	ended time.Time
}

// NewContainers returns a runtime that runs nothing.
func NewContainers() *Containers { return &Containers{pods: map[types.UID]*pod{}} }

// Boot ends everything, as a boot of the machine does. Kubelets start it again.
func (c *Containers) Boot(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.pods {
		if !p.started.IsZero() {
			p.restarts++
			p.ended = now
		}
		p.made, p.started, p.stopping = time.Time{}, time.Time{}, time.Time{}
	}
}

// Running is the number of pods whose containers run.
func (c *Containers) Running() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, p := range c.pods {
		if !p.started.IsZero() {
			n++
		}
	}
	return n
}

// change changes a pod, which is made if there is none, and returns it.
func (c *Containers) change(id types.UID, change func(*pod)) pod {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.pods[id]
	if !ok {
		c.made++
		p = &pod{number: c.made}
		c.pods[id] = p
	}
	change(p)
	return *p
}

// remove forgets a pod.
func (c *Containers) remove(id types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pods, id)
}

// keepOnly forgets pods that are not in a list.
func (c *Containers) keepOnly(ids map[types.UID]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.pods {
		if !ids[id] {
			delete(c.pods, id)
		}
	}
}
